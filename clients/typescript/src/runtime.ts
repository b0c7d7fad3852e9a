// What generated code uses.

export {
  type AnyField,
  type Bean,
  type BeanClass,
  type BeanParts,
  type Codec,
  decodeBean,
  decodeFields,
  EmptyBean,
  encodeBean,
  encodeFields,
  type Field,
  type FieldsOf,
  type KeyCodec,
  type UnknownField,
} from "./bean.js";
export { ByteReader, type Tag } from "./byte_reader.js";
export { ByteWriter } from "./byte_writer.js";
export { type Protocol, type Rpc } from "./protocol.js";
export * as types from "./types.js";
export { ValueMap, ValueSet } from "./value_map.js";
export type {
  Quaternion,
  Vector2,
  Vector2Int,
  Vector3,
  Vector3Int,
  Vector4,
} from "./vectors.js";
