// Beans: what the classes that `zeze gen --language typescript` writes are made of, and how they
// become bytes.

import { ByteReader, type Tag } from "./byte_reader.js";
import { ByteWriter } from "./byte_writer.js";
import { DecodeError, EncodeError } from "./errors.js";
import { TypeCode } from "./type_code.js";

/** A value that can be sent. Generated classes are, and classes written by hand can be. */
export interface Bean {
  encode(out: ByteWriter): void;
  /** Into a fresh object: fields that are absent stay as they are. Throws a DecodeError. */
  decode(input: ByteReader): void;
}

/** What a generated class has besides its instances. */
export interface BeanClass<B extends Bean> {
  new (): B;
  readonly typeId: bigint;
  readonly fullName: string;
  readonly fields: readonly AnyField[];
}

/** How the value of a field is written and read. */
export interface Codec<T> {
  /** What it is written as. */
  readonly code: TypeCode;
  zero(): T;
  /** Whether a field with this value is left out; never asked of beans. */
  isZero(value: T): boolean;
  /** The value without a tag. Throws an EncodeError if it is not one of the type. */
  write(out: ByteWriter, value: T): void;
  /** From what was written with that code, converted. Throws a DecodeError. */
  read(input: ByteReader, code: TypeCode): T;
}

/** Of values that can be keys of maps and elements of sets. */
export interface KeyCodec<T> extends Codec<T> {
  /** Negative, zero or positive, as for Array.sort; the order of sorted maps. */
  compare(a: T, b: T): number;
}

/** A field of the class B: its name and the type of its value fit the class. */
export type Field<B> = {
  [Name in keyof B & string]: {
    readonly id: number;
    readonly name: Name;
    readonly codec: Codec<B[Name]>;
    /** It has a default, and absent means zero all the same. */
    readonly zeroWhenAbsent?: true;
  };
}[keyof B & string];

/** A field of a class that is not known. */
export interface AnyField {
  readonly id: number;
  readonly name: string;
  readonly codec: Codec<unknown>;
  readonly zeroWhenAbsent?: true;
}

/** A field that this program's schema does not have, kept as it came. */
export interface UnknownField {
  readonly id: number;
  readonly type: TypeCode;
  readonly payload: Uint8Array;
}

/** What the constructor of a generated class takes: values for some of its fields. */
export type FieldsOf<B extends Bean> = Partial<Omit<B, "encode" | "decode">>;

/** What some beans have besides their fields. */
export interface BeanParts {
  readonly base?: Bean;
  readonly unknownFields?: UnknownField[];
}

/** Writes the fields, which are in ascending order of their ids, and the end of the bean. */
export function encodeFields<B extends Bean>(
  bean: B,
  fields: readonly Field<B>[],
  out: ByteWriter,
  parts: BeanParts = {},
): void {
  const values = bean as unknown as Readonly<Record<string, unknown>>;
  const unknown = parts.unknownFields ?? [];
  let nextUnknown = 0;
  let lastId = 0;
  const writeUnknownBelow = (id: number): void => {
    for (; nextUnknown < unknown.length; ++nextUnknown) {
      const field = unknown[nextUnknown];
      if (field === undefined || field.id >= id) return;
      lastId = out.writeTag(lastId, field.id, field.type);
      out.writeRaw(field.payload);
    }
  };
  out.nested(() => {
    for (const field of fields as unknown as readonly AnyField[]) {
      writeUnknownBelow(field.id);
      try {
        lastId = writeField(field, values[field.name], lastId, out);
      } catch (error) {
        throw EncodeError.inside(field.name, error);
      }
    }
    writeUnknownBelow(Infinity);
    if (parts.base === undefined) {
      out.writeEnd();
    } else {
      out.writeBaseMark();
      parts.base.encode(out);
    }
  });
}

function writeField(field: AnyField, value: unknown, lastId: number, out: ByteWriter): number {
  const { codec } = field;
  if (codec.code !== TypeCode.Bean) {
    if (codec.isZero(value)) return lastId;
    const id = out.writeTag(lastId, field.id, codec.code);
    codec.write(out, value);
    return id;
  }
  // Left out if it turns out to be the single byte 00.
  const begin = out.size;
  const id = out.writeTag(lastId, field.id, codec.code);
  const payload = out.size;
  codec.write(out, value);
  if (out.size !== payload + 1) return id;
  out.truncate(begin);
  return lastId;
}

/** Reads the fields, which are in ascending order of their ids, up to the end of the bean. */
export function decodeFields<B extends Bean>(
  bean: B,
  fields: readonly Field<B>[],
  input: ByteReader,
  parts: BeanParts = {},
): void {
  const values = bean as unknown as Record<string, unknown>;
  input.nested(() => {
    let tag: Tag = input.readTag(0);
    const skipBelow = (id: number): void => {
      while (tag.kind === "field" && tag.id < id) {
        const begin = input.position;
        input.skip(tag.type);
        const { id: unknownId, type } = tag;
        parts.unknownFields?.push({ id: unknownId, type, payload: input.since(begin) });
        tag = input.readTag(unknownId);
      }
    };
    for (const field of fields as unknown as readonly AnyField[]) {
      skipBelow(field.id);
      if (tag.kind === "field" && tag.id === field.id) {
        values[field.name] = field.codec.read(input, tag.type);
        tag = input.readTag(tag.id);
      } else if (field.zeroWhenAbsent === true) {
        values[field.name] = field.codec.zero();
      }
    }
    skipBelow(Infinity);
    if (tag.kind === "base") {
      if (parts.base === undefined) input.skipFields();
      else parts.base.decode(input);
    }
  });
}

export function encodeBean(bean: Bean): Uint8Array {
  const out = new ByteWriter();
  bean.encode(out);
  return out.toBytes();
}

/** Throws a DecodeError unless the bytes are exactly one bean of the class. */
export function decodeBean<B extends Bean>(type: BeanClass<B>, bytes: Uint8Array): B {
  const input = new ByteReader(bytes);
  const bean = new type();
  try {
    bean.decode(input);
    if (input.remaining > 0) input.fail(`${input.remaining} bytes follow behind its end`);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new DecodeError(`decoding ${type.fullName}: ${error.message}`);
  }
  return bean;
}

/** A bean without fields: the argument or result of protocols that name none. */
export class EmptyBean implements Bean {
  static readonly typeId = 0n;
  static readonly fullName = "Zeze.Transaction.EmptyBean";
  static readonly fields: readonly Field<EmptyBean>[] = [];

  encode(out: ByteWriter): void {
    out.writeEnd();
  }

  decode(input: ByteReader): void {
    input.nested(() => {
      input.skipFields();
    });
  }
}
