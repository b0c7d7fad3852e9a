// The byte vectors that the existing implementations wrote (tests/compatibility/core.json): all
// that concern what the client does are reproduced and understood. Every type of vector is either
// checked here or listed as something that the client has not.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  type Bean,
  ByteReader,
  ByteWriter,
  type Codec,
  DecodeError,
  decodeFields,
  encodeBean,
  encodeFields,
  encodeFrame,
  errorCode,
  type Field,
  type Frame,
  FrameDecoder,
  FrameFamily,
  protocolTypeId,
  TypeCode,
  types,
  type UnknownField,
} from "zeze-client";

import {
  type DescribedBean,
  decodeDescribedBean,
  encodeDescribedBean,
} from "./support/described_bean.js";
import { fromHex, toHex } from "./support/hex.js";

interface Vector {
  readonly name: string;
  readonly type: string;
  readonly value: unknown;
  readonly hex: string;
}

const vectorFile = process.env["ZEZE_CORE_VECTORS"] ?? "../../tests/compatibility/core.json";
const vectors = JSON.parse(readFileSync(vectorFile, "utf8")) as Vector[];
const VECTOR_COUNT = 543;

/** Ids are the generator's work; WebSocket connections have no crypto and compression of ours. */
const NOT_IN_THE_CLIENT = [
  /^(beanTypeId|protocolId|tableId|moduleId|globalKey|calc_hashnr\(.*)$/,
  /^key:Id128\(/,
  /^decode$/, // Arguments of the handshake, which WebSocket connections do not have.
  /^(bigint|encryptParam|shared material|HMAC-MD5|AES|mppc|zstd)/,
];

type Check = (vector: Vector) => void;

function text(vector: Vector): string {
  assert.equal(typeof vector.value, "string");
  return vector.value as string;
}

/** Written by us it has the vector's bytes; read by us they are that value, to the last byte. */
function bothWays<T>(
  parse: (text: string) => T,
  write: (out: ByteWriter, value: T) => void,
  read: (input: ByteReader) => T,
): Check {
  return (vector) => {
    const value = parse(text(vector));
    const out = new ByteWriter();
    write(out, value);
    assert.equal(toHex(out.toBytes()), vector.hex);
    const input = new ByteReader(fromHex(vector.hex));
    assert.deepEqual(read(input), value);
    assert.equal(input.remaining, 0);
  };
}

function ofCodec<T>(codec: Codec<T>, parse: (text: string) => T): Check {
  return bothWays(
    parse,
    (out, value) => {
      codec.write(out, value);
    },
    (input) => codec.read(input, codec.code),
  );
}

const utf16Units = (value: string): string =>
  String.fromCharCode(...value.split(" ").map((unit) => parseInt(unit, 16)));

const vectorOf = (value: string): { x: number; y: number; z: number; w: number } =>
  Object.fromEntries(
    value.split(",").map((part, i) => [["x", "y", "z", "w"][i], Math.fround(Number(part))]),
  ) as { x: number; y: number; z: number; w: number };

function numberAfter(value: string, key: string): number {
  const found = new RegExp(`${key}(-?\\d+)`).exec(value);
  assert.ok(found, `${key} in ${value}`);
  return Number(found[1]);
}

const codecs: Readonly<Record<string, Codec<unknown>>> = {
  bool: types.bool,
  byte: types.byte,
  short: types.short,
  int: types.int,
  long: types.long,
  float: types.float,
  double: types.double,
  string: types.string,
  binary: types.binary,
  vector2: types.vector2,
  vector3: types.vector3,
  vector4: types.vector4,
  quaternion: types.quaternion,
  vector2int: types.vector2int,
  vector3int: types.vector3int,
};

function codecNamed(name: string): Codec<unknown> {
  const codec = codecs[name];
  assert.ok(codec, `a codec for ${name}`);
  return codec;
}

/** What a codec read, in the notation of the vectors. */
function show(declared: string, value: unknown): string {
  if (value instanceof Uint8Array) return toHex(value);
  if (typeof value === "object" && value !== null) return Object.values(value).join(",");
  if (declared === "float") return String(Math.fround(value as number));
  return String(value);
}

/** "1.0,-1.1" as the numbers of the declared type. */
function expected(declared: string, value: string): string {
  if (value === "ERROR" || ["bool", "binary", "string", "long"].includes(declared)) return value;
  const single = declared !== "double" && !declared.endsWith("int");
  const parts = value.split(",").map((part) => (single ? Math.fround(Number(part)) : Number(part)));
  return parts.join(",");
}

/** "ERROR" for a DecodeError. */
function outcome(read: () => string): string {
  try {
    return read();
  } catch (error) {
    assert.ok(error instanceof DecodeError, String(error));
    return "ERROR";
  }
}

/** "decode:byte tag 0x11": a byte is declared, the tag says FLOAT. */
function checkDeclared(vector: Vector): void {
  const [, declared = "", tag = ""] = /^decode:(\w+) tag (0x\w\w)$/.exec(vector.type) ?? [];
  const code = (parseInt(tag, 16) & 15) as TypeCode;
  const bytes = fromHex(vector.hex);
  const actual = outcome(() => {
    // A tag that is read, as codes that do not exist are noticed there.
    const input = new ByteReader(Uint8Array.of(parseInt(tag, 16), ...bytes));
    assert.deepEqual(input.readTag(0), { kind: "field", id: 1, type: code });
    if (declared === "skip") {
      input.skip(code);
      return `consumed ${input.position - 1}`;
    }
    const value = codecNamed(declared).read(input, code);
    assert.equal(input.remaining, 0);
    return show(declared, value);
  });
  assert.equal(actual, declared === "skip" ? text(vector) : expected(declared, text(vector)));
}

function plain(read: (input: ByteReader) => string): Check {
  return (vector) => {
    const input = new ByteReader(fromHex(vector.hex));
    const actual = outcome(() => {
      const value = read(input);
      assert.equal(input.remaining, 0);
      return value;
    });
    assert.equal(actual, text(vector));
  };
}

const codePoints = (value: string): string =>
  [...value]
    .map((c) => `U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`)
    .join(" ");

function checkTag(vector: Vector): void {
  const lastId = numberAfter(text(vector), "lastId=");
  const id = numberAfter(text(vector), " id=");
  const type = numberAfter(text(vector), "type=") as TypeCode;
  const out = new ByteWriter();
  assert.equal(out.writeTag(lastId, id, type), id);
  assert.equal(toHex(out.toBytes()), vector.hex);
  const input = new ByteReader(fromHex(vector.hex));
  assert.deepEqual(input.readTag(lastId), { kind: "field", id, type });
}

/** Elements of zeros behind a header, as its reader insists that they are there. */
function withZeros(hex: string): ByteReader {
  return new ByteReader(Uint8Array.of(...fromHex(hex), ...new Uint8Array(100_000)));
}

function checkListHeader(vector: Vector): void {
  const count = numberAfter(text(vector), "size=");
  const element = numberAfter(text(vector), "elem=") as TypeCode;
  const out = new ByteWriter();
  out.writeListHeader(count, element);
  assert.equal(toHex(out.toBytes()), vector.hex);
  assert.deepEqual(withZeros(vector.hex).readListHeader(), { count, element });
}

function checkMapHeader(vector: Vector): void {
  const count = numberAfter(text(vector), "size=");
  const key = numberAfter(text(vector), "key=") as TypeCode;
  const value = numberAfter(text(vector), "value=") as TypeCode;
  const out = new ByteWriter();
  out.writeMapHeader(count, key, value);
  assert.equal(toHex(out.toBytes()), vector.hex);
  assert.deepEqual(withZeros(vector.hex).readMapHeader(), { count, key, value });
}

function checkSize4(vector: Vector): void {
  const out = new ByteWriter();
  const begin = out.beginSize4();
  out.writeInt4(7);
  out.endSize4(begin);
  assert.equal(toHex(out.toBytes()), vector.hex);
  const block = new ByteReader(fromHex(vector.hex)).readSize4();
  assert.equal(block.readInt4(), 7);
  assert.equal(block.remaining, 0);
}

function checkBean(vector: Vector): void {
  const bean = vector.value as DescribedBean;
  const out = new ByteWriter();
  encodeDescribedBean(bean, out);
  assert.equal(toHex(out.toBytes()), vector.hex);
  const input = new ByteReader(fromHex(vector.hex));
  decodeDescribedBean(bean, input);
  assert.equal(input.remaining, 0);
  checkSkipped(vector);
}

/** Whoever knows none of its fields passes over it. */
function checkSkipped(vector: Vector): void {
  const input = new ByteReader(fromHex(vector.hex));
  input.skip(TypeCode.Bean);
  assert.equal(input.remaining, 0);
}

/** A schema without any of the fields: all are kept and written back. */
class KnowsNothing implements Bean {
  unknownFields: UnknownField[] = [];

  encode(out: ByteWriter): void {
    encodeFields<KnowsNothing>(this, [], out, { unknownFields: this.unknownFields });
  }

  decode(input: ByteReader): void {
    decodeFields<KnowsNothing>(this, [], input, { unknownFields: this.unknownFields });
  }
}

class KnowsTheFirst implements Bean {
  static readonly fields: readonly Field<KnowsTheFirst>[] = [
    { id: 1, name: "first", codec: types.long },
  ];
  first = 0n;
  unknownFields: UnknownField[] = [];

  encode(out: ByteWriter): void {
    encodeFields(this, KnowsTheFirst.fields, out, { unknownFields: this.unknownFields });
  }

  decode(input: ByteReader): void {
    decodeFields(this, KnowsTheFirst.fields, input, { unknownFields: this.unknownFields });
    assert.equal(this.first, 5n);
  }
}

function checkKept(make: () => Bean): Check {
  return (vector) => {
    const bean = make();
    bean.decode(new ByteReader(fromHex(vector.hex)));
    assert.equal(toHex(encodeBean(bean)), vector.hex);
    checkSkipped(vector);
  };
}

function beanKey(...fieldTypes: string[]): Check {
  return (vector) => {
    const parts = text(vector).split(",");
    const fields = fieldTypes.map((type, i) => {
      return { id: i + 1, type, value: parts[i]?.split("=").at(-1) ?? "" };
    });
    checkBean({ ...vector, value: { fields } });
  };
}

const familyOf: Readonly<Record<string, FrameFamily>> = {
  protocol: FrameFamily.OneWay,
  request: FrameFamily.Request,
  response: FrameFamily.Response,
};

function checkFrame(vector: Vector): void {
  const value = vector.value as Readonly<Record<string, string>>;
  const bytes = fromHex(vector.hex);
  const frames: Frame[] = [];
  const decoder = new FrameDecoder(1 << 20);
  const kind = value["kind"] ?? "";
  const family = familyOf[kind];
  if (family === undefined) {
    // Raft is between servers.
    assert.match(kind, /raft/i);
    assert.throws(() => {
      decoder.push(bytes, () => true);
    }, DecodeError);
    return;
  }
  const head = {
    moduleId: Number(value["moduleId"]),
    protocolId: Number(value["protocolId"]),
    family,
    resultCode: BigInt(value["resultCode"] ?? 0),
    sessionId: family === FrameFamily.OneWay ? 0n : BigInt(value["sessionId"] ?? 0),
  };
  const payload = fromHex(value["bodyHex"] ?? "");
  const encoded = encodeFrame(head, {
    encode: (out) => {
      out.writeRaw(payload);
    },
  });
  assert.equal(toHex(encoded), vector.hex);
  decoder.push(bytes, (frame) => frames.push(frame) > 0);
  assert.equal(frames.length, 1);
  const { payload: rest, ...read } = frames[0] as Frame;
  assert.deepEqual(read, head);
  assert.equal(rest.remaining, payload.length);
}

function checkTypeId(vector: Vector): void {
  const moduleId = numberAfter(text(vector), "module ");
  const id = protocolTypeId(moduleId, numberAfter(text(vector), "protocol "));
  assert.equal(BigInt.asUintN(64, id).toString(16).padStart(16, "0"), vector.hex);
}

function checkErrorCode(vector: Vector): void {
  const moduleId = numberAfter(text(vector), "module ");
  const out = new ByteWriter();
  out.writeLong(errorCode(moduleId, numberAfter(text(vector), "code ")));
  assert.equal(toHex(out.toBytes()), vector.hex);
}

const checks: Readonly<Record<string, Check>> = {
  uint: bothWays(
    Number,
    (out, value) => out.writeUint(value),
    (input) => input.readUint(),
  ),
  ulong: bothWays(
    BigInt,
    (out, value) => out.writeUlong(value),
    (input) => input.readUlong(),
  ),
  long: bothWays(
    BigInt,
    (out, value) => out.writeLong(value),
    (input) => input.readLong(),
  ),
  bool: ofCodec(types.bool, (value) => value === "true"),
  rawbyte: bothWays(
    (value) => Number(value) & 0xff,
    (out, value) => out.writeByte(value),
    (input) => input.readByte(),
  ),
  int4: bothWays(
    Number,
    (out, value) => out.writeInt4(value),
    (input) => input.readInt4(),
  ),
  int4be: bothWays(
    Number,
    (out, value) => out.writeInt4BigEndian(value),
    (input) => input.readInt4BigEndian(),
  ),
  long8: bothWays(
    BigInt,
    (out, value) => out.writeLong8(value),
    (input) => input.readLong8(),
  ),
  long8be: bothWays(
    BigInt,
    (out, value) => out.writeLong8BigEndian(value),
    (input) => input.readLong8BigEndian(),
  ),
  float: ofCodec(types.float, (value) => Math.fround(Number(value))),
  double: ofCodec(types.double, Number),
  string: ofCodec(types.string, (value) => value),
  "string-utf16-units": (vector) => {
    // Written as Java writes them; what comes back is U+FFFD, as it is in Java.
    const out = new ByteWriter();
    out.writeString(utf16Units(text(vector)));
    assert.equal(toHex(out.toBytes()), vector.hex);
    assert.match(new ByteReader(fromHex(vector.hex)).readString(), /\ufffd/);
  },
  "string-prefix": (vector) => {
    const out = new ByteWriter();
    out.writeString("x".repeat(parseInt(text(vector), 10)));
    assert.equal(toHex(out.toBytes().subarray(0, vector.hex.length / 2)), vector.hex);
  },
  bytes: ofCodec(types.binary, (value) =>
    value === "128 zero bytes" ? new Uint8Array(128) : fromHex(value),
  ),
  size4: checkSize4,
  vector2: ofCodec(types.vector2, vectorOf),
  vector3: ofCodec(types.vector3, vectorOf),
  vector4: ofCodec(types.vector4, vectorOf),
  quaternion: ofCodec(types.quaternion, vectorOf),
  vector2int: ofCodec(types.vector2int, vectorOf),
  vector3int: ofCodec(types.vector3int, vectorOf),
  tag: checkTag,
  listtype: checkListHeader,
  maptype: checkMapHeader,
  "decode:uint": plain((input) => String(input.readUint())),
  "decode:long": plain((input) => String(input.readLong())),
  "decode:int": plain((input) => String(input.readInt())),
  "decode:bool": plain((input) => String(input.readBool())),
  "decode:string": plain((input) => codePoints(input.readString())),
  "decode:bytes": plain((input) => toHex(input.readBytes())),
  bean: checkBean,
  "bean-generated": checkKept(() => new KnowsNothing()),
  "bean-reencode": checkKept(() => new KnowsTheFirst()),
  "key:beankey{1:string,2:long}": beanKey("string", "long"),
  "key:beankey{1..4:int,5:long}": beanKey("int", "int", "int", "int", "long"),
  "key:bool": ofCodec(types.bool, (value) => value === "true"),
  "key:byte": ofCodec(types.byte, Number),
  "key:short": ofCodec(types.short, Number),
  "key:int": ofCodec(types.int, Number),
  "key:long": ofCodec(types.long, BigInt),
  "key:float": ofCodec(types.float, Number),
  "key:double": ofCodec(types.double, Number),
  "key:string": ofCodec(types.string, (value) => value),
  "key:binary": ofCodec(types.binary, fromHex),
  typeId: checkTypeId,
  errorCode: checkErrorCode,
  frame: checkFrame,
};

function checkOf(vector: Vector): Check | undefined {
  return checks[vector.type] ?? (vector.type.startsWith("decode:") ? checkDeclared : undefined);
}

test("all vectors that concern the client agree", (context) => {
  let checked = 0;
  let others = 0;
  for (const vector of vectors) {
    const check = checkOf(vector);
    if (check === undefined) {
      const known = NOT_IN_THE_CLIENT.some((pattern) => pattern.test(vector.type));
      assert.ok(known, `nothing checks vectors of type ${vector.type}`);
      ++others;
      continue;
    }
    try {
      check(vector);
    } catch (error) {
      throw new Error(`${vector.name} (${vector.type}) ${vector.hex}`, { cause: error });
    }
    ++checked;
  }
  assert.equal(checked + others, VECTOR_COUNT);
  context.diagnostic(`${checked} vectors agree, ${others} are about what the client has not`);
});

/** Copies with one digit changed, with nothing but zeros, and with a value where an error was. */
function* changedCopies(vector: Vector): Iterable<Vector> {
  for (let i = 0; i < vector.hex.length; ++i) {
    const digit = vector.hex[i] === "0" ? "1" : "0";
    yield { ...vector, hex: vector.hex.slice(0, i) + digit + vector.hex.slice(i + 1) };
  }
  yield { ...vector, hex: vector.hex.replace(/./g, "0") };
  if (vector.value === "ERROR") yield { ...vector, value: "1" };
}

test("every check notices changed bytes", () => {
  const noticed = new Map<string, number>();
  for (const vector of vectors) {
    const check = checkOf(vector);
    if (check === undefined) continue;
    for (const changed of changedCopies(vector)) {
      let failures = noticed.get(vector.type) ?? 0;
      try {
        check(changed);
      } catch {
        ++failures;
      }
      noticed.set(vector.type, failures);
    }
  }
  for (const [type, failures] of noticed) assert.ok(failures > 0, type);
});
