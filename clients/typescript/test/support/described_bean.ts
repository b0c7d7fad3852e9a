// Encodes and checks beans from the descriptions of their fields in core.json, by the rules of the
// format and with the client's codecs.

import assert from "node:assert/strict";

import { type ByteReader, ByteWriter, type Codec, TypeCode, types } from "zeze-client";

import { fromHex } from "./hex.js";

export interface DescribedField {
  readonly id: number | string;
  readonly type: string;
  readonly value: unknown;
  readonly elemType?: string;
  readonly keyType?: string;
  readonly valueType?: string;
}

export interface DescribedBean {
  readonly fields: readonly DescribedField[];
  readonly parent?: DescribedBean;
}

interface DescribedDynamic {
  readonly typeId: string;
  readonly bean: DescribedBean;
}

const scalars: Readonly<Record<string, { codec: Codec<unknown>; parse(value: unknown): unknown }>> =
  {
    bool: { codec: types.bool, parse: (value) => value === true || value === "true" },
    byte: { codec: types.byte, parse: Number },
    short: { codec: types.short, parse: Number },
    int: { codec: types.int, parse: Number },
    long: { codec: types.long, parse: (value) => BigInt(value as string) },
    float: { codec: types.float, parse: (value) => Math.fround(Number(value)) },
    double: { codec: types.double, parse: Number },
    string: { codec: types.string, parse: String },
    binary: { codec: types.binary, parse: (value) => fromHex(value as string) },
    vector2: { codec: types.vector2, parse: parseVector },
    vector3: { codec: types.vector3, parse: parseVector },
    vector4: { codec: types.vector4, parse: parseVector },
    quaternion: { codec: types.quaternion, parse: parseVector },
    vector2int: { codec: types.vector2int, parse: parseVector },
    vector3int: { codec: types.vector3int, parse: parseVector },
  };

function parseVector(value: unknown): unknown {
  const names = ["x", "y", "z", "w"];
  return Object.fromEntries(
    (value as string[]).map((part, i) => [names[i], Math.fround(Number(part))]),
  );
}

/** A codec that knows what it must read. */
function codecOf(type: string, field?: DescribedField): Codec<unknown> {
  const scalar = scalars[type];
  if (scalar !== undefined) return scalar.codec;
  if (type === "list") return listOf(field?.elemType ?? "");
  if (type === "map") return mapOf(field?.keyType ?? "", field?.valueType ?? "");
  return type === "dynamic" ? dynamicCodec : beanCodec;
}

function parsed(type: string, value: unknown): unknown {
  return scalars[type]?.parse(value) ?? value;
}

const beanCodec: Codec<unknown> = {
  code: TypeCode.Bean,
  zero: () => ({ fields: [] }),
  isZero: () => false,
  write: (out, value) => {
    encodeDescribedBean(value as DescribedBean, out);
  },
  read: () => assert.fail("beans are compared as they are read"),
};

const dynamicCodec: Codec<unknown> = {
  code: TypeCode.Dynamic,
  zero: () => null,
  isZero: (value) => {
    const { typeId, bean } = value as DescribedDynamic;
    return typeId === "0" && bean.fields.length === 0;
  },
  write: (out, value) => {
    const { typeId, bean } = value as DescribedDynamic;
    out.writeLong(BigInt(typeId));
    encodeDescribedBean(bean, out);
  },
  read: () => assert.fail("beans are compared as they are read"),
};

function listOf(type: string): Codec<unknown> {
  const element = codecOf(type);
  return {
    code: TypeCode.List,
    zero: () => [],
    isZero: (value) => (value as unknown[]).length === 0,
    write: (out, value) => {
      const elements = value as unknown[];
      out.writeListHeader(elements.length, element.code);
      for (const each of elements) element.write(out, parsed(type, each));
    },
    read: () => assert.fail("elements are compared as they are read"),
  };
}

function mapOf(keyType: string, valueType: string): Codec<unknown> {
  const key = codecOf(keyType);
  const value = codecOf(valueType);
  return {
    code: TypeCode.Map,
    zero: () => [],
    isZero: (pairs) => (pairs as unknown[]).length === 0,
    write: (out, pairs) => {
      const all = pairs as [unknown, unknown][];
      out.writeMapHeader(all.length, key.code, value.code);
      for (const [k, v] of all) {
        key.write(out, parsed(keyType, k));
        value.write(out, parsed(valueType, v));
      }
    },
    read: () => assert.fail("pairs are compared as they are read"),
  };
}

function isElided(field: DescribedField): boolean {
  const value = parsed(field.type, field.value);
  if (field.type !== "bean") return codecOf(field.type, field).isZero(value);
  const out = new ByteWriter();
  encodeDescribedBean(value as DescribedBean, out);
  return out.size === 1;
}

export function encodeDescribedBean(bean: DescribedBean, out: ByteWriter): void {
  let lastId = 0;
  for (const field of bean.fields) {
    if (isElided(field)) continue;
    const codec = codecOf(field.type, field);
    lastId = out.writeTag(lastId, Number(field.id), codec.code);
    codec.write(out, parsed(field.type, field.value));
  }
  if (bean.parent === undefined) {
    out.writeEnd();
  } else {
    out.writeBaseMark();
    encodeDescribedBean(bean.parent, out);
  }
}

/** Expects that the next bytes are this bean. */
export function decodeDescribedBean(bean: DescribedBean, input: ByteReader): void {
  let lastId = 0;
  for (const field of bean.fields) {
    if (isElided(field)) continue;
    const tag = input.readTag(lastId);
    assert.ok(tag.kind === "field");
    assert.equal(tag.id, Number(field.id));
    lastId = tag.id;
    expectValue(field.type, tag.type, field, input);
  }
  const end = input.readTag(lastId);
  assert.equal(end.kind, bean.parent === undefined ? "end" : "base");
  if (bean.parent !== undefined) decodeDescribedBean(bean.parent, input);
}

function expectValue(
  type: string,
  code: TypeCode,
  field: Pick<DescribedField, "value" | "elemType" | "keyType" | "valueType">,
  input: ByteReader,
): void {
  const scalar = scalars[type];
  if (scalar !== undefined) {
    assert.deepEqual(scalar.codec.read(input, code), scalar.parse(field.value));
  } else if (type === "bean") {
    decodeDescribedBean(field.value as DescribedBean, input);
  } else if (type === "dynamic") {
    const { typeId, bean } = field.value as DescribedDynamic;
    assert.equal(input.readLong(), BigInt(typeId));
    decodeDescribedBean(bean, input);
  } else if (type === "list") {
    const elements = field.value as unknown[];
    const { count, element } = input.readListHeader();
    assert.equal(count, elements.length);
    for (const value of elements) expectValue(field.elemType ?? "", element, { value }, input);
  } else {
    const pairs = field.value as [unknown, unknown][];
    const header = input.readMapHeader();
    assert.equal(header.count, pairs.length);
    for (const [key, value] of pairs) {
      expectValue(field.keyType ?? "", header.key, { value: key }, input);
      expectValue(field.valueType ?? "", header.value, { value }, input);
    }
  }
}
