// Numbers as their declared type, from whatever number was written: conversions as in Java.

import type { ByteReader } from "./byte_reader.js";
import { TypeCode } from "./type_code.js";

/** Toward zero, saturating; NaN becomes 0. */
function toInt32(value: number): number {
  if (Number.isNaN(value)) return 0;
  return Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.trunc(value))) + 0;
}

function toInt64(value: number): bigint {
  if (Number.isNaN(value)) return 0n;
  if (value >= 2 ** 63) return 2n ** 63n - 1n;
  if (value <= -(2 ** 63)) return -(2n ** 63n);
  return BigInt(Math.trunc(value));
}

/** Rounded once; by way of a double it could be rounded twice. */
function toFloat32(value: bigint): number {
  const rounded = Number(value);
  if (BigInt(rounded) === value) return Math.fround(rounded);
  // 24 bits are kept, the next one decides, and of all behind it only matters that they are not 0.
  const magnitude = value < 0n ? -value : value;
  const cut = BigInt(magnitude.toString(2).length - 26);
  const short = Number(((magnitude >> cut) | 1n) << cut);
  return Math.fround(value < 0n ? -short : short);
}

export function readInt32(input: ByteReader, code: TypeCode): number {
  switch (code) {
    case TypeCode.Integer:
      return input.readInt();
    case TypeCode.Float:
      return toInt32(input.readFloat());
    case TypeCode.Double:
      return toInt32(input.readDouble());
    default:
      return input.failType("an integer", code);
  }
}

export function readInt64(input: ByteReader, code: TypeCode): bigint {
  switch (code) {
    case TypeCode.Integer:
      return input.readLong();
    case TypeCode.Float:
      return toInt64(input.readFloat());
    case TypeCode.Double:
      return toInt64(input.readDouble());
    default:
      return input.failType("long", code);
  }
}

export function readFloat32(input: ByteReader, code: TypeCode): number {
  switch (code) {
    case TypeCode.Float:
      return input.readFloat();
    case TypeCode.Double:
      return Math.fround(input.readDouble());
    case TypeCode.Integer:
      return toFloat32(input.readLong());
    default:
      return input.failType("float", code);
  }
}

export function readFloat64(input: ByteReader, code: TypeCode): number {
  switch (code) {
    case TypeCode.Double:
      return input.readDouble();
    case TypeCode.Float:
      return input.readFloat();
    case TypeCode.Integer:
      return Number(input.readLong());
    default:
      return input.failType("double", code);
  }
}

/** NaN is behind everything. */
export function compareNumbers(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : a > b ? 1 : 0;
}
