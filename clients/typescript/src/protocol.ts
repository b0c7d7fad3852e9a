// What the schema says about messages, and how calls end.

import type { Bean } from "./bean.js";

/** What both kinds of messages have. Generated; by hand for messages of the framework. */
interface Message<A extends Bean> {
  readonly moduleId: number;
  readonly protocolId: number;
  /** Module id in the high, protocol id in the low 32 bits. */
  readonly typeId: bigint;
  readonly fullName: string;
  readonly newArgument: () => A;
}

/** A one-way message. */
export interface Protocol<A extends Bean> extends Message<A> {
  readonly kind: "protocol";
}

/** A request with an answer. */
export interface Rpc<A extends Bean, R extends Bean> extends Message<A> {
  readonly kind: "rpc";
  readonly newResult: () => R;
  /** How long a caller waits unless he says otherwise; without it the client's own time. */
  readonly timeoutMs?: number;
}

export function protocolTypeId(moduleId: number, protocolId: number): bigint {
  return (BigInt(moduleId) << 32n) | BigInt(protocolId >>> 0);
}

/** A result code of a module's own, as its handlers return it. */
export function errorCode(moduleId: number, code: number): bigint {
  return protocolTypeId(moduleId, code);
}

/** The result codes of the framework: zeze/base/result_code.h. They travel: never renumbered. */
export const ResultCode = {
  Success: 0n,
  Exception: -1n,
  TooManyTry: -2n,
  NotImplement: -3n,
  Unknown: -4n,
  ErrorSavepoint: -5n,
  LogicError: -6n,
  RedoAndRelease: -7n,
  AbortException: -8n,
  ProviderNotExist: -9n,
  Timeout: -10n,
  CancelException: -11n,
  DuplicateRequest: -12n,
  ErrorRequestId: -13n,
  ErrorSendFail: -14n,
  RaftRetry: -15n,
  RaftApplied: -16n,
  RaftExpired: -17n,
  Closed: -18n,
  Busy: -19n,
  AuthFail: -20n,
} as const;

/**
 * How a call failed:
 * - answered: the server refused it, with a result code;
 * - timedOut, closed: no answer came; the server may or may not have done what was asked;
 * - notSent: the server has not seen it.
 */
export type RpcOutcome = "answered" | "timedOut" | "closed" | "notSent";

/** Why a call failed. Every promise of `call` that fails by itself fails with one of these. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  /** The module whose code it is; 0 for the framework's. */
  readonly moduleId: number;
  /** The code inside that module, or the framework's. */
  readonly code: number;

  constructor(
    message: string,
    readonly outcome: RpcOutcome,
    readonly resultCode: bigint,
    /** What came with the code, if it was answered. */
    readonly result: Bean | undefined = undefined,
  ) {
    super(message);
    this.moduleId = resultCode < 0n ? 0 : Number(resultCode >> 32n);
    this.code = Number(BigInt.asIntN(32, resultCode));
  }

  /** Whether it is this code of this module: `error.is(Game.moduleId, Game.Login.eNoAccount)`. */
  is(moduleId: number, code: number): boolean {
    return this.moduleId === moduleId && this.code === code;
  }
}
