// The types of the schema that are one value.

import type { Codec, KeyCodec } from "./bean.js";
import { checkRange } from "./byte_writer.js";
import { checkValue } from "./errors.js";
import { compareNumbers, readFloat32, readFloat64, readInt32, readInt64 } from "./numbers.js";
import { TypeCode } from "./type_code.js";
import { compareTexts } from "./utf8.js";

export const bool: KeyCodec<boolean> = {
  code: TypeCode.Integer,
  zero: () => false,
  isZero: (value) => value === false,
  write(out, value) {
    checkValue(typeof value === "boolean", value, "bool");
    out.writeBool(value);
  },
  read(input, code) {
    switch (code) {
      case TypeCode.Integer:
        return input.readBool();
      case TypeCode.Float:
        return input.readFloat() !== 0;
      case TypeCode.Double:
        return input.readDouble() !== 0;
      default:
        return input.failType("bool", code);
    }
  },
  compare: (a, b) => Number(a) - Number(b),
};

function integer(name: string, bits: number): KeyCodec<number> {
  const most = 2 ** (bits - 1) - 1;
  const unused = 32 - bits;
  return {
    code: TypeCode.Integer,
    zero: () => 0,
    isZero: (value) => value === 0,
    write(out, value) {
      checkRange(value, -most - 1, most, name);
      out.writeInt(value);
    },
    read: (input, code) => (readInt32(input, code) << unused) >> unused,
    compare: compareNumbers,
  };
}

export const byte = integer("byte", 8);
export const short = integer("short", 16);
export const int = integer("int", 32);

export const long: KeyCodec<bigint> = {
  code: TypeCode.Integer,
  zero: () => 0n,
  isZero: (value) => value === 0n,
  write(out, value) {
    checkValue(typeof value === "bigint", value, "long (a bigint: write 1n, not 1)");
    out.writeLong(value);
  },
  read: readInt64,
  compare: (a, b) => (a < b ? -1 : a > b ? 1 : 0),
};

export const float: Codec<number> = {
  code: TypeCode.Float,
  zero: () => 0,
  // What is sent has 32 bits, and those may be zero where the 64 of a number are not.
  isZero: (value) => Math.fround(value) === 0,
  write(out, value) {
    checkValue(typeof value === "number", value, "float");
    out.writeFloat(value);
  },
  read: readFloat32,
};

export const double: Codec<number> = {
  code: TypeCode.Double,
  zero: () => 0,
  isZero: (value) => value === 0,
  write(out, value) {
    checkValue(typeof value === "number", value, "double");
    out.writeDouble(value);
  },
  read: readFloat64,
};

export const string: KeyCodec<string> = {
  code: TypeCode.Bytes,
  zero: () => "",
  isZero: (value) => value === "",
  write(out, value) {
    checkValue(typeof value === "string", value, "string");
    out.writeString(value);
  },
  read(input, code) {
    return code === TypeCode.Bytes ? input.readString() : input.failType("string", code);
  },
  compare: compareTexts,
};

export const binary: KeyCodec<Uint8Array> = {
  code: TypeCode.Bytes,
  zero: () => new Uint8Array(0),
  isZero: (value) => value instanceof Uint8Array && value.length === 0,
  write(out, value) {
    checkValue(value instanceof Uint8Array, value, "binary (a Uint8Array)");
    out.writeBytes(value);
  },
  read(input, code) {
    return code === TypeCode.Bytes ? input.readBytes() : input.failType("binary", code);
  },
  compare(a, b) {
    const length = Math.min(a.length, b.length);
    for (let i = 0; i < length; ++i) {
      const difference = (a[i] ?? 0) - (b[i] ?? 0);
      if (difference !== 0) return difference;
    }
    return a.length - b.length;
  },
};

/** [sign] digits with at most one point, [exponent of at most 10 digits]. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,10})?$/;

/** A decimal number of any length, as text. Written even when zero: "0" is not an empty text. */
export const decimal: KeyCodec<string> = {
  code: TypeCode.Bytes,
  zero: () => "0",
  isZero: () => false,
  write(out, value) {
    const good = typeof value === "string" && DECIMAL.test(value);
    checkValue(good, value, 'decimal (a text like "-12.50")');
    out.writeString(value);
  },
  read(input, code) {
    if (code !== TypeCode.Bytes) input.failType("decimal", code);
    const text = input.readString();
    return DECIMAL.test(text) ? text : input.fail("the text of a decimal is not a number");
  },
  compare: compareTexts,
};
