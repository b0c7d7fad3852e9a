import { type Bean, EmptyBean } from "./bean.js";
import { encodeFrame, type Frame, FrameFamily, type FrameHead } from "./frame.js";
import { KeepAlive } from "./keep_alive.js";
import { type Protocol, ResultCode, type Rpc, RpcError } from "./protocol.js";

type Listener = (argument: Bean) => void | Promise<void>;
type RequestHandler = (argument: Bean) => Bean | Promise<Bean>;

/** Takes what the server sends by itself to those who want it. */
export class Dispatcher {
  readonly #listeners = new Map<bigint, { protocol: Protocol<Bean>; all: Set<Listener> }>();
  readonly #handlers = new Map<bigint, { rpc: Rpc<Bean, Bean>; handler: RequestHandler }>();
  readonly #onError: (error: unknown) => void;

  /** Gets what handlers throw, and messages that cannot be decoded. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.handle(KeepAlive, () => new EmptyBean());
  }

  on<A extends Bean>(
    protocol: Protocol<A>,
    listener: (argument: A) => void | Promise<void>,
  ): () => void {
    let entry = this.#listeners.get(protocol.typeId);
    if (entry === undefined) {
      entry = { protocol, all: new Set() };
      this.#listeners.set(protocol.typeId, entry);
    }
    const { all } = entry;
    const own = (argument: Bean): void | Promise<void> => listener(argument as A);
    all.add(own);
    return () => {
      all.delete(own);
    };
  }

  handle<A extends Bean, R extends Bean>(
    rpc: Rpc<A, R>,
    handler: (argument: A) => R | Promise<R>,
  ): () => void {
    const entry = { rpc, handler: (argument: Bean) => handler(argument as A) };
    this.#handlers.set(rpc.typeId, entry);
    return () => {
      if (this.#handlers.get(rpc.typeId) === entry) this.#handlers.delete(rpc.typeId);
    };
  }

  /** A message; false if nobody wants it. */
  message(typeId: bigint, frame: Frame): boolean {
    const entry = this.#listeners.get(typeId);
    if (entry === undefined || entry.all.size === 0) return false;
    try {
      const argument = entry.protocol.newArgument();
      argument.decode(frame.payload);
      for (const listener of [...entry.all]) this.#call(() => listener(argument));
    } catch (error) {
      this.#onError(error);
    }
    return true;
  }

  /** A request; the answer goes to `send`, now or later. */
  request(typeId: bigint, frame: Frame, send: (bytes: Uint8Array) => void): void {
    const answer = (resultCode: bigint, result: Bean): void => {
      const { moduleId, protocolId, sessionId } = frame;
      const family = FrameFamily.Response;
      const head: FrameHead = { moduleId, protocolId, family, resultCode, sessionId };
      send(encodeFrame(head, result));
    };
    const entry = this.#handlers.get(typeId);
    if (entry === undefined) {
      answer(ResultCode.NotImplement, new EmptyBean());
      return;
    }
    const run = async (): Promise<void> => {
      const argument = entry.rpc.newArgument();
      argument.decode(frame.payload);
      answer(ResultCode.Success, await entry.handler(argument));
    };
    run().catch((error: unknown) => {
      // A handler refuses by throwing an RpcError with a code of its own.
      const refusal = error instanceof RpcError ? error.resultCode : ResultCode.Exception;
      if (!(error instanceof RpcError)) this.#onError(error);
      answer(refusal, entry.rpc.newResult());
    });
  }

  #call(listener: () => void | Promise<void>): void {
    try {
      const done = listener();
      if (done instanceof Promise) done.catch(this.#onError);
    } catch (error) {
      this.#onError(error);
    }
  }
}
