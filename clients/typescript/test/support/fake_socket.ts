import {
  type Bean,
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameFamily,
  type Protocol,
  type Rpc,
  type WebSocketConstructor,
  type WebSocketLike,
} from "zeze-client";

type Listener = (event: { data: unknown; code: number; reason: string; message: string }) => void;

/** The other end of a connection in a test: the test says when what happens. */
export class FakeSocket implements WebSocketLike {
  binaryType = "blob";
  bufferedAmount = 0;
  /** What the client has sent, as messages of the WebSocket. */
  readonly messages: Uint8Array[] = [];
  /** What they amount to, as frames. */
  readonly frames: Frame[] = [];
  closedWith: number | undefined;
  readonly #listeners = new Map<string, Listener[]>();
  readonly #decoder = new FrameDecoder(1 << 30);

  constructor(readonly url: string) {}

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  send(data: Uint8Array): void {
    this.messages.push(data.slice());
    this.#decoder.push(data, (frame) => this.frames.push(frame) > 0);
  }

  close(code?: number): void {
    this.closedWith = code ?? 1005;
  }

  open(): void {
    this.#emit("open", {});
  }

  /** The connection breaks, or the server closes it. */
  break(code = 1006, reason = ""): void {
    this.#emit("close", { code, reason });
  }

  fail(message: string): void {
    this.#emit("error", { message });
    this.break();
  }

  receive(data: Uint8Array | string): void {
    this.#emit("message", { data: typeof data === "string" ? data : new Uint8Array(data).buffer });
  }

  /** The server answers the n-th frame that the client sent. */
  answer<R extends Bean>(index: number, result: R, resultCode = 0n): void {
    const frame = this.frames[index];
    if (frame === undefined) throw new Error(`the client has not sent ${index + 1} frames`);
    const { moduleId, protocolId, sessionId } = frame;
    const family = FrameFamily.Response;
    this.receive(encodeFrame({ moduleId, protocolId, family, resultCode, sessionId }, result));
  }

  /** The server sends a one-way message. */
  tell<A extends Bean>(protocol: Protocol<A>, argument: A): void {
    this.receive(oneWay(protocol, argument));
  }

  /** The server asks. */
  ask<A extends Bean, R extends Bean>(rpc: Rpc<A, R>, argument: A, sessionId: bigint): void {
    const { moduleId, protocolId } = rpc;
    const head = { moduleId, protocolId, family: FrameFamily.Request, resultCode: 0n, sessionId };
    this.receive(encodeFrame(head, argument));
  }

  #emit(type: string, event: Partial<Parameters<Listener>[0]>): void {
    for (const listener of this.#listeners.get(type) ?? []) {
      listener({ data: undefined, code: 0, reason: "", message: "", ...event });
    }
  }
}

export function oneWay<A extends Bean>(protocol: Protocol<A>, argument: A): Uint8Array {
  const { moduleId, protocolId } = protocol;
  const family = FrameFamily.OneWay;
  return encodeFrame({ moduleId, protocolId, family, resultCode: 0n, sessionId: 0n }, argument);
}

/** A constructor of WebSockets that keeps what it made. */
export function fakeNetwork(): { sockets: FakeSocket[]; webSocket: WebSocketConstructor } {
  const sockets: FakeSocket[] = [];
  const webSocket = class extends FakeSocket {
    constructor(url: string) {
      super(url);
      sockets.push(this);
    }
  };
  return { sockets, webSocket };
}
