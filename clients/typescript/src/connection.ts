import { EmptyBean } from "./bean.js";
import type { Dispatcher } from "./dispatcher.js";
import { encodeFrame, type Frame, FrameDecoder, FrameFamily } from "./frame.js";
import { KeepAlive } from "./keep_alive.js";
import type { PendingCall } from "./pending_call.js";
import type { Clock, WebSocketLike } from "./platform.js";
import { protocolTypeId, ResultCode } from "./protocol.js";

/** Bounds and times of one connection. */
export interface ConnectionLimits {
  readonly frameBytesMax: number;
  readonly messageBytesMax: number;
  readonly bufferedBytesMax: number;
  readonly pendingCallsMax: number;
  readonly keepAliveMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** How a connection ended. */
export interface Loss {
  /** Of the WebSocket: 1000 normal, 1006 broken, 1009 too big, ... */
  readonly closeCode: number;
  readonly closeReason: string;
  /** What happened, for people. */
  readonly problem: string;
}

export interface ConnectionEvents {
  opened(): void;
  /** Once, whatever the cause; all calls have failed by then. */
  lost(loss: Loss): void;
  /** A message that nobody wanted. */
  unhandled(moduleId: number, protocolId: number): void;
}

const NORMAL_CLOSE = 1000;
const BROKEN = 1006;
/** From the range that RFC 6455 leaves to applications: the server sent what is no frame. */
const BAD_DATA = 4002;

/**
 * One WebSocket: frames in and out, calls that wait for their answers, signs of life. Ends once and
 * for all; what comes after it is the client's affair.
 */
export class Connection {
  readonly #socket: WebSocketLike;
  readonly #limits: ConnectionLimits;
  readonly #events: ConnectionEvents;
  readonly #dispatcher: Dispatcher;
  readonly #clock: Clock;
  readonly #decoder: FrameDecoder;
  readonly #calls = new Map<bigint, PendingCall>();
  #state: "opening" | "open" | "ended" = "opening";
  #socketProblem = "";
  #cancelKeepAlive: () => void = () => undefined;
  #cancelProbe: (() => void) | undefined;
  #sentLately = false;
  #receivedLately = false;

  constructor(
    socket: WebSocketLike,
    limits: ConnectionLimits,
    dispatcher: Dispatcher,
    clock: Clock,
    events: ConnectionEvents,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#dispatcher = dispatcher;
    this.#clock = clock;
    this.#events = events;
    this.#decoder = new FrameDecoder(limits.frameBytesMax);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      if (this.#state !== "opening") return;
      this.#state = "open";
      this.#scheduleKeepAlive();
      events.opened();
    });
    socket.addEventListener("message", ({ data }) => {
      this.#received(data);
    });
    socket.addEventListener("error", ({ message }) => {
      this.#socketProblem = message ?? "";
    });
    socket.addEventListener("close", ({ code, reason }) => {
      const cause = reason !== "" ? reason : this.#socketProblem;
      // Browsers do not tell pages why a connection could not be opened.
      const what = this.#state === "opening" ? "it cannot be reached" : "the connection closed";
      const problem = `${what} (${code}${cause === "" ? "" : `, ${cause}`})`;
      this.#end({ closeCode: code, closeReason: reason, problem });
    });
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Sends a call and waits for its answer; a call that cannot be sent fails at once. */
  submit(call: PendingCall): void {
    if (this.#calls.size >= this.#limits.pendingCallsMax) {
      const problem = `${this.#calls.size} calls are waiting for their answers already`;
      call.fail("notSent", ResultCode.ErrorSendFail, problem);
      return;
    }
    const problem = this.#whyNotSent(call.frame);
    if (problem !== "") {
      call.fail("notSent", this.isOpen ? ResultCode.ErrorSendFail : ResultCode.Closed, problem);
      return;
    }
    call.sent = true;
    this.#calls.set(call.sessionId, call);
    call.onEnd = () => this.#calls.delete(call.sessionId);
    this.#write(call.frame);
  }

  /** Sends a frame; false if it cannot be sent. */
  sendFrame(frame: Uint8Array): boolean {
    if (this.#whyNotSent(frame) !== "") return false;
    this.#write(frame);
    return true;
  }

  /** Ends it. Waits for nothing: a peer that is gone would not answer. */
  close(problem: string): void {
    this.#fail(NORMAL_CLOSE, problem);
  }

  #whyNotSent(frame: Uint8Array): string {
    if (!this.isOpen) return "there is no connection";
    const { frameBytesMax, bufferedBytesMax } = this.#limits;
    if (frame.length > frameBytesMax) {
      return `the message has ${frame.length} bytes, at most ${frameBytesMax} are allowed`;
    }
    const waiting = this.#socket.bufferedAmount;
    if (waiting + frame.length > bufferedBytesMax) {
      return `${waiting} bytes are waiting to be sent, at most ${bufferedBytesMax} may`;
    }
    return "";
  }

  #write(frame: Uint8Array): void {
    this.#sentLately = true;
    // Peers accept WebSocket messages up to a size, and frames across messages.
    const { messageBytesMax } = this.#limits;
    for (let at = 0; at < frame.length; at += messageBytesMax) {
      this.#socket.send(frame.subarray(at, at + messageBytesMax));
    }
  }

  #received(data: unknown): void {
    if (this.#state !== "open") return;
    this.#receivedLately = true;
    this.#cancelProbe?.();
    this.#cancelProbe = undefined;
    const bytes = asBytes(data);
    if (bytes === undefined) {
      this.#fail(BAD_DATA, "the server sent a text, which is no part of the protocol");
      return;
    }
    try {
      this.#decoder.push(bytes, (frame) => {
        this.#deliver(frame);
        return this.#state === "open";
      });
    } catch (error) {
      // Where the next frame begins is not known any more.
      this.#fail(BAD_DATA, error instanceof Error ? error.message : String(error));
    }
  }

  #deliver(frame: Frame): void {
    const typeId = protocolTypeId(frame.moduleId, frame.protocolId);
    switch (frame.family) {
      case FrameFamily.Response: {
        const call = this.#calls.get(frame.sessionId);
        // An answer that came too late, or that was never asked for, is dropped.
        if (call !== undefined && call.rpc.typeId === typeId) call.answer(frame);
        return;
      }
      case FrameFamily.Request:
        this.#dispatcher.request(typeId, frame, (bytes) => this.sendFrame(bytes));
        return;
      case FrameFamily.OneWay:
        if (!this.#dispatcher.message(typeId, frame)) {
          this.#events.unhandled(frame.moduleId, frame.protocolId);
        }
        return;
    }
  }

  /** Each period without traffic in one of the directions asks the server for a sign of life. */
  #scheduleKeepAlive(): void {
    const { keepAliveMs } = this.#limits;
    if (keepAliveMs <= 0) return;
    this.#sentLately = false;
    this.#receivedLately = false;
    this.#cancelKeepAlive = this.#clock.after(keepAliveMs, () => {
      const quiet = !this.#sentLately || !this.#receivedLately;
      if (quiet && this.#cancelProbe === undefined) this.#probe();
      this.#scheduleKeepAlive();
    });
  }

  #probe(): void {
    const { moduleId, protocolId } = KeepAlive;
    const head = { moduleId, protocolId, family: FrameFamily.Request, resultCode: 0n };
    this.sendFrame(encodeFrame({ ...head, sessionId: 0n }, new EmptyBean()));
    const { keepAliveTimeoutMs } = this.#limits;
    this.#cancelProbe = this.#clock.after(keepAliveTimeoutMs, () => {
      this.#fail(BROKEN, `no sign of life from the server within ${keepAliveTimeoutMs} ms`);
    });
  }

  #fail(closeCode: number, problem: string): void {
    this.#end({ closeCode, closeReason: "", problem });
    try {
      this.#socket.close(closeCode === BROKEN ? NORMAL_CLOSE : closeCode, "");
    } catch {
      // It may be closed already.
    }
  }

  #end(loss: Loss): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#cancelKeepAlive();
    this.#cancelProbe?.();
    for (const call of [...this.#calls.values()]) {
      call.fail("closed", ResultCode.Closed, loss.problem);
    }
    this.#events.lost(loss);
  }
}

function asBytes(data: unknown): Uint8Array | undefined {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (data instanceof Uint8Array) return data;
  return undefined;
}
