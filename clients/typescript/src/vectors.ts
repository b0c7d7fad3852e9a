// Vectors of the schema: plain objects with x, y, z, w.

import type { KeyCodec } from "./bean.js";
import type { ByteReader } from "./byte_reader.js";
import { checkRange } from "./byte_writer.js";
import { EncodeError } from "./errors.js";
import { compareNumbers, readFloat32, readInt32 } from "./numbers.js";
import { TypeCode } from "./type_code.js";

export interface Vector2 {
  x: number;
  y: number;
}

export interface Vector3 extends Vector2 {
  z: number;
}

export interface Vector4 extends Vector3 {
  w: number;
}

/** Zero when it is new, not the identity: an absent field means zero. */
export type Quaternion = Vector4;
/** Of whole numbers. */
export type Vector2Int = Vector2;
/** Of whole numbers. */
export type Vector3Int = Vector3;

const NAMES = ["x", "y", "z", "w"] as const;

/** How many components an encoded value has, and of which type; none if it is no vector. */
function componentsOf(code: TypeCode): { count: number; type: TypeCode } | undefined {
  switch (code) {
    case TypeCode.Integer:
    case TypeCode.Float:
    case TypeCode.Double:
      return { count: 1, type: code };
    case TypeCode.Vector2:
      return { count: 2, type: TypeCode.Float };
    case TypeCode.Vector3:
      return { count: 3, type: TypeCode.Float };
    case TypeCode.Vector4:
      return { count: 4, type: TypeCode.Float };
    case TypeCode.Vector2Int:
      return { count: 2, type: TypeCode.Integer };
    case TypeCode.Vector3Int:
      return { count: 3, type: TypeCode.Integer };
    default:
      return undefined;
  }
}

interface Components {
  readonly dimension: number;
  readonly code: TypeCode;
  readonly whole: boolean;
}

function vector<V extends Vector2>({ dimension, code: ownCode, whole }: Components): KeyCodec<V> {
  const names = NAMES.slice(0, dimension);
  const make = (values: readonly number[]): V =>
    Object.fromEntries(names.map((name, i) => [name, values[i] ?? 0])) as unknown as V;
  const get = (value: V, name: (typeof NAMES)[number]): number => {
    const components = value as unknown as Readonly<Record<string, unknown>> | undefined;
    const component = components?.[name];
    if (typeof component !== "number") throw new EncodeError(`a vector without the number ${name}`);
    return component;
  };
  const readComponents = (input: ByteReader, code: TypeCode): number[] => {
    const found = componentsOf(code) ?? input.failType("a vector", code);
    const values: number[] = [];
    for (let i = 0; i < found.count; ++i) {
      // The components of an integer vector have 32 bits, a plain integer has 64.
      const isInt = whole || code === TypeCode.Vector2Int || code === TypeCode.Vector3Int;
      const component = isInt ? readInt32(input, found.type) : readFloat32(input, found.type);
      values.push(whole ? component : Math.fround(component));
    }
    return values;
  };
  return {
    code: ownCode,
    zero: () => make([]),
    isZero: (value) =>
      names.every((name) => (whole ? get(value, name) : Math.fround(get(value, name))) === 0),
    write(out, value) {
      for (const name of names) {
        const component = get(value, name);
        if (whole) {
          checkRange(component, -(2 ** 31), 2 ** 31 - 1, `int as the ${name} of a vector`);
          out.writeInt(component);
        } else {
          out.writeFloat(component);
        }
      }
    },
    read: (input, code) => make(readComponents(input, code)),
    compare(a, b) {
      for (const name of names) {
        const order = compareNumbers(get(a, name), get(b, name));
        if (order !== 0) return order;
      }
      return 0;
    },
  };
}

export const vector2 = vector<Vector2>({ dimension: 2, code: TypeCode.Vector2, whole: false });
export const vector3 = vector<Vector3>({ dimension: 3, code: TypeCode.Vector3, whole: false });
export const vector4 = vector<Vector4>({ dimension: 4, code: TypeCode.Vector4, whole: false });
export const quaternion: KeyCodec<Quaternion> = vector4;
export const vector2int = vector<Vector2Int>({
  dimension: 2,
  code: TypeCode.Vector2Int,
  whole: true,
});
export const vector3int = vector<Vector3Int>({
  dimension: 3,
  code: TypeCode.Vector3Int,
  whole: true,
});
