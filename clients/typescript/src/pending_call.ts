import type { Bean } from "./bean.js";
import { DecodeError } from "./errors.js";
import type { Frame } from "./frame.js";
import type { Clock } from "./platform.js";
import { ResultCode, type Rpc, RpcError, type RpcOutcome } from "./protocol.js";

/**
 * A call from its beginning to its end, wherever it is meanwhile: in the queue, or sent. Ends once;
 * its time-out counts from the beginning.
 */
export class PendingCall {
  /** Whether the server may have seen it. */
  sent = false;
  /** Called when it ends, so that whoever holds it lets go. */
  onEnd: () => void = () => undefined;
  #done = false;
  readonly #cancelTimer: () => void;

  constructor(
    readonly sessionId: bigint,
    readonly frame: Uint8Array,
    readonly rpc: Rpc<Bean, Bean>,
    timeoutMs: number,
    clock: Clock,
    readonly resolve: (result: Bean) => void,
    readonly reject: (error: Error) => void,
  ) {
    this.#cancelTimer = clock.after(timeoutMs, () => {
      const outcome = this.sent ? "timedOut" : "notSent";
      const what = this.sent ? "no answer" : "no connection";
      this.fail(outcome, ResultCode.Timeout, `${what} within ${timeoutMs} ms`);
    });
  }

  answer(frame: Frame): void {
    const { resultCode } = frame;
    let result: Bean | undefined = this.rpc.newResult();
    try {
      result.decode(frame.payload);
    } catch (error) {
      if (resultCode === 0n) {
        const problem = error instanceof Error ? error.message : String(error);
        this.#end(() => {
          this.reject(new DecodeError(`decoding the answer of ${this.rpc.fullName}: ${problem}`));
        });
        return;
      }
      result = undefined; // Whoever refuses a request need not know how its result would look.
    }
    this.#end(() => {
      if (resultCode === 0n && result !== undefined) {
        this.resolve(result);
      } else {
        const error = new RpcError("", "answered", resultCode);
        const where = error.moduleId === 0 ? "" : ` of module ${error.moduleId}`;
        const message = `${this.rpc.fullName}: refused with code ${error.code}${where}`;
        this.reject(new RpcError(message, "answered", resultCode, result));
      }
    });
  }

  fail(outcome: RpcOutcome, resultCode: bigint, problem: string): void {
    this.#end(() => {
      this.reject(new RpcError(`${this.rpc.fullName}: ${problem}`, outcome, resultCode));
    });
  }

  #end(settle: () => void): void {
    if (this.#done) return;
    this.#done = true;
    this.#cancelTimer();
    this.onEnd();
    settle();
  }
}
