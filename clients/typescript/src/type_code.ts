/**
 * What kind of value follows a tag in an encoded bean. Sent as the low nibble of a tag byte: the
 * numbers never change; 13 to 15 are free and refused.
 */
export const TypeCode = {
  Integer: 0, // bool, byte, short, int, long: a signed varint.
  Float: 1,
  Double: 2,
  Bytes: 3, // string, binary, decimal: length and bytes.
  List: 4, // list, array, set: header and elements.
  Map: 5, // map, sortedmap, gtable: header and pairs.
  Bean: 6, // bean, beankey: tagged fields and an end marker.
  Dynamic: 7, // Type id and bean.
  Vector2: 8,
  Vector2Int: 9,
  Vector3: 10,
  Vector3Int: 11,
  Vector4: 12, // vector4, quaternion.
} as const;

export type TypeCode = (typeof TypeCode)[keyof typeof TypeCode];

/** The largest id of a field. */
export const FIELD_ID_MAX = 4095;

/** How deep beans may be nested; deeper ones are refused by writers and readers alike. */
export const DEPTH_MAX = 128;

const NAMES = [
  "INTEGER",
  "FLOAT",
  "DOUBLE",
  "BYTES",
  "LIST",
  "MAP",
  "BEAN",
  "DYNAMIC",
  "VECTOR2",
  "VECTOR2INT",
  "VECTOR3",
  "VECTOR3INT",
  "VECTOR4",
] as const;

const BYTES_MIN = [1, 4, 8, 1, 1, 2, 1, 2, 8, 2, 12, 3, 16] as const;

export function isTypeCode(code: number): code is TypeCode {
  return code >= 0 && code < NAMES.length;
}

export function typeCodeName(code: TypeCode): string {
  return NAMES[code];
}

/**
 * The fewest bytes that a value of this type takes as an element. Claimed counts are checked
 * against it before anything is allocated.
 */
export function minEncodedBytes(code: TypeCode): number {
  return BYTES_MIN[code];
}
