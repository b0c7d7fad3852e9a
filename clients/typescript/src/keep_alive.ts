import { EmptyBean } from "./bean.js";
import { protocolTypeId, type Rpc } from "./protocol.js";

/** Asks the other side for a sign of life. */
export const KeepAlive = {
  kind: "rpc",
  moduleId: 0,
  protocolId: -183352608,
  typeId: protocolTypeId(0, -183352608),
  fullName: "Zeze.Services.Handshake.KeepAlive",
  newArgument: () => new EmptyBean(),
  newResult: () => new EmptyBean(),
} as const satisfies Rpc<EmptyBean, EmptyBean>;
