// zeze-client: everything an application and generated code use.

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
export { BReportError, BRetryAfter, KeepAlive, ReportError, RetryAfter } from "./builtin.js";
export { ByteReader, type Tag } from "./byte_reader.js";
export { ByteWriter } from "./byte_writer.js";
export {
  type CallOptions,
  type ClientOptions,
  type ClientState,
  type Link,
  type LostConnection,
  type Url,
  ZezeClient,
} from "./client.js";
export { DecodeError, EncodeError } from "./errors.js";
export {
  encodeFrame,
  type Frame,
  FRAME_HEADER_BYTES,
  FrameDecoder,
  FrameFamily,
  type FrameHead,
} from "./frame.js";
export type { Clock, WebSocketConstructor, WebSocketLike } from "./platform.js";
export {
  errorCode,
  type Protocol,
  protocolTypeId,
  ResultCode,
  type Rpc,
  RpcError,
  type RpcOutcome,
} from "./protocol.js";
export { TypeCode } from "./type_code.js";
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
