// Messages of the framework that every client knows.

import {
  type Bean,
  decodeFields,
  EmptyBean,
  encodeFields,
  type Field,
  type FieldsOf,
} from "./bean.js";
import type { ByteReader } from "./byte_reader.js";
import type { ByteWriter } from "./byte_writer.js";
import { type Protocol, protocolTypeId, type Rpc } from "./protocol.js";
import { int, string } from "./scalars.js";

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

/**
 * What linkd tells a client about messages it could not deliver, and why it is being kicked.
 *
 * | from | code |
 * |---|---|
 * | 0, linkd | 1 not authenticated, 2 no provider, 3 provider busy, 4 provider broken |
 * | 1, provider | a kick code: 4 duplicate login, 7 server stopping, 8 authentication, ... |
 * | 2, dynamic module not bound | the module's id |
 */
export class BReportError implements Bean {
  static readonly typeId = -947669033141460287n;
  static readonly fullName = "Zeze.Builtin.LinkdBase.BReportError";
  static readonly fields: readonly Field<BReportError>[] = [
    { id: 1, name: "from", codec: int },
    { id: 2, name: "code", codec: int },
    { id: 3, name: "desc", codec: string },
  ];

  from = 0;
  code = 0;
  desc = "";

  constructor(fields?: FieldsOf<BReportError>) {
    Object.assign(this, fields);
  }

  encode(out: ByteWriter): void {
    encodeFields(this, BReportError.fields, out);
  }

  decode(input: ByteReader): void {
    decodeFields(this, BReportError.fields, input);
  }
}

export const ReportError = {
  kind: "protocol",
  moduleId: 11011,
  protocolId: 918874807,
  typeId: protocolTypeId(11011, 918874807),
  fullName: "Zeze.Builtin.LinkdBase.ReportError",
  newArgument: () => new BReportError(),
} as const satisfies Protocol<BReportError>;

/** What `zeze linkd` says to one of too many clients that come at once, before it closes. */
export class BRetryAfter implements Bean {
  static readonly typeId = 3783425567978094736n;
  static readonly fullName = "Zeze.Builtin.LinkdAuth.BRetryAfter";
  static readonly fields: readonly Field<BRetryAfter>[] = [
    { id: 1, name: "milliseconds", codec: int },
  ];

  milliseconds = 0;

  constructor(fields?: FieldsOf<BRetryAfter>) {
    Object.assign(this, fields);
  }

  encode(out: ByteWriter): void {
    encodeFields(this, BRetryAfter.fields, out);
  }

  decode(input: ByteReader): void {
    decodeFields(this, BRetryAfter.fields, input);
  }
}

export const RetryAfter = {
  kind: "protocol",
  moduleId: 11900,
  protocolId: 1785121304,
  typeId: protocolTypeId(11900, 1785121304),
  fullName: "Zeze.Builtin.LinkdAuth.RetryAfter",
  newArgument: () => new BRetryAfter(),
} as const satisfies Protocol<BRetryAfter>;
