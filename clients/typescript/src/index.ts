// zeze-client: everything an application and generated code use.

export { authenticateBy, tokenFromHex, tokenOfAccount } from "./authenticate.js";
export * as GameOnline from "./builtin/Zeze/Builtin/Game/Online.js";
export { BRetryAfter, RetryAfter } from "./builtin/Zeze/Builtin/LinkdAuth.js";
export * as LinkdAuth from "./builtin/Zeze/Builtin/LinkdAuth.js";
export { BReportError, ReportError } from "./builtin/Zeze/Builtin/LinkdBase.js";
export * as LinkdBase from "./builtin/Zeze/Builtin/LinkdBase.js";
export * as Online from "./builtin/Zeze/Builtin/Online.js";
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
export { KeepAlive } from "./keep_alive.js";
export type { LoginAs, LoginOutcome } from "./login_keeper.js";
export type { Clock, WebSocketConstructor, WebSocketLike } from "./platform.js";
export { errorCode, protocolTypeId, ResultCode, RpcError, type RpcOutcome } from "./protocol.js";
export * from "./runtime.js";
export { TypeCode } from "./type_code.js";
