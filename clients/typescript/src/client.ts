import { Backoff } from "./backoff.js";
import type { Bean } from "./bean.js";
import { type BReportError, ReportError, RetryAfter } from "./builtin.js";
import { Connection, type ConnectionLimits, type Loss } from "./connection.js";
import { Dispatcher } from "./dispatcher.js";
import { encodeFrame, FrameFamily } from "./frame.js";
import { OfflineQueue } from "./offline_queue.js";
import { PendingCall } from "./pending_call.js";
import { type Clock, platform, systemClock, type WebSocketConstructor } from "./platform.js";
import { type Protocol, ResultCode, type Rpc, RpcError } from "./protocol.js";

/** Where to connect: one server, several (one after the other), or whatever a function says. */
export type Url = string | readonly string[] | ((attempt: number) => string);

/**
 * - idle: connect() has not been called;
 * - connecting: a WebSocket is being opened;
 * - authenticating: it is open and onConnected runs;
 * - ready: calls go out;
 * - waiting: the connection was lost, the next attempt is due later;
 * - closed: for good.
 */
export type ClientState =
  | "idle"
  | "connecting"
  | "authenticating"
  | "ready"
  | "waiting"
  | "closed";

/** How and after what a connection was lost. */
export interface LostConnection extends Loss {
  /** What linkd said last on this connection. */
  readonly report: BReportError | undefined;
  /** Attempts since the last connection that held, this one included. */
  readonly attempt: number;
}

export interface CallOptions {
  /** Instead of the time in the schema, or of the client. */
  readonly timeoutMs?: number;
}

/** One connection: what onConnected gets, to authenticate before anything else is sent. */
export interface Link {
  /**
   * Asks and waits for the answer. Fails with an RpcError if there is none, or a code other than 0;
   * with an EncodeError if the argument does not fit its types.
   */
  call<A extends Bean, R extends Bean>(
    rpc: Rpc<A, R>,
    argument: A,
    options?: CallOptions,
  ): Promise<R>;
  /**
   * Sends a one-way message; false if it was not, and will not be, sent, because there is too much
   * before it. Throws an EncodeError if the argument does not fit its types.
   */
  send<A extends Bean>(protocol: Protocol<A>, argument: A): boolean;
}

/** Every option has a default. Times in milliseconds. */
export interface ClientOptions {
  /** Needed where there is no global WebSocket: Node.js below 22. The npm package `ws` has one. */
  readonly webSocket?: WebSocketConstructor;
  /**
   * Runs on each new connection, before the calls that are waiting go out: authenticate here, with
   * the link's own call. The connection is given up if it fails.
   */
  readonly onConnected?: (link: Link) => void | Promise<void>;
  /**
   * How long to wait before the next attempt; undefined leaves it to what the gateway has said
   * (RetryAfter), or else to the back-off. Up to backoffMinMs are added, as many clients may have
   * been told the same.
   */
  readonly retryAfterMs?: (lost: LostConnection) => number | undefined;
  /** False: a lost connection closes the client. */
  readonly reconnect?: boolean;
  /** What handlers throw, what onConnected throws, messages that cannot be decoded. */
  readonly onError?: (error: unknown) => void;
  /** One-way messages that nobody wants; they are dropped. */
  readonly onUnhandled?: (moduleId: number, protocolId: number) => void;

  /** Of calls that say nothing else. */
  readonly timeoutMs?: number;
  /** For opening the connection and onConnected together. */
  readonly connectTimeoutMs?: number;
  /** Ask for a sign of life after so much silence; 0: never. */
  readonly keepAliveMs?: number;
  /** Give the connection up if none comes. */
  readonly keepAliveTimeoutMs?: number;
  /** The first attempt comes within this time, each further one within twice the time before... */
  readonly backoffMinMs?: number;
  /** ...but not more than this. */
  readonly backoffMaxMs?: number;
  /** A connection that held so long starts the back-off anew. */
  readonly stableMs?: number;

  /** The largest body of a frame, in both directions. */
  readonly frameBytesMax?: number;
  /** The largest WebSocket message; larger frames are sent in several. */
  readonly messageBytesMax?: number;
  /** How much may wait in the WebSocket. */
  readonly bufferedBytesMax?: number;
  /** How many calls may wait for their answers. */
  readonly pendingCallsMax?: number;
  /** How many messages may wait for a connection... */
  readonly queuedMessagesMax?: number;
  /** ...and of how many bytes. */
  readonly queuedBytesMax?: number;

  /** For tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

const KIB = 1024;

/**
 * A client of a zeze server, over WebSocket. It reconnects by itself; calls made meanwhile wait,
 * within bounds and their time-outs. A call that was sent before the connection was lost fails at
 * once and is not sent again, as the server may have done it.
 *
 *     const client = new ZezeClient({
 *       onConnected: async (link) => { await link.call(Auth, new BAuth({ token })); },
 *     });
 *     client.on(Say, (message) => console.log(message.text));
 *     await client.connect("wss://game.example/ws");
 *     const result = await client.call(Login, new BLogin({ account: "ann" }));
 */
export class ZezeClient implements Link {
  readonly #options: ClientOptions;
  readonly #limits: ConnectionLimits;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #dispatcher: Dispatcher;
  readonly #queue: OfflineQueue;
  readonly #backoff: Backoff;
  readonly #stateListeners = new Set<(state: ClientState) => void>();
  #state: ClientState = "idle";
  #nextUrl: (attempt: number) => string = () => "";
  #connection: Connection | undefined;
  #report: BReportError | undefined;
  /** What the gateway of this connection has asked for. */
  #retryAfterMs: number | undefined;
  #lastSessionId = 0n;
  #readySince: number | undefined;
  /** Of the attempt under way, or of the wait for the next one. */
  #cancelTimer: () => void = () => undefined;
  #connected: { resolve: () => void; reject: (error: Error) => void } | undefined;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#limits = {
      frameBytesMax: options.frameBytesMax ?? 2 * KIB * KIB,
      messageBytesMax: options.messageBytesMax ?? 32 * KIB,
      bufferedBytesMax: options.bufferedBytesMax ?? 4 * KIB * KIB,
      pendingCallsMax: options.pendingCallsMax ?? 1000,
      keepAliveMs: options.keepAliveMs ?? 20_000,
      keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 15_000,
    };
    this.#dispatcher = new Dispatcher((error) => {
      this.#reportProblem(error);
    });
    this.#queue = new OfflineQueue(
      options.queuedMessagesMax ?? 1000,
      options.queuedBytesMax ?? KIB * KIB,
    );
    this.#backoff = new Backoff(
      options.backoffMinMs ?? 500,
      options.backoffMaxMs ?? 15_000,
      this.#random,
    );
    this.on(ReportError, (report) => {
      this.#report = report;
    });
    this.on(RetryAfter, ({ milliseconds }) => {
      this.#retryAfterMs = milliseconds;
    });
  }

  get state(): ClientState {
    return this.#state;
  }

  /**
   * Connects, and from then on stays connected until close(). Resolves when the first connection is
   * ready, however many attempts that takes; fails if the client closes before.
   */
  connect(url: Url): Promise<void> {
    if (this.#state !== "idle") {
      return Promise.reject(new Error(`connect() is called once; the client is ${this.#state}`));
    }
    this.#nextUrl = urlChooser(url, this.#random);
    return new Promise((resolve, reject) => {
      this.#connected = { resolve, reject };
      this.#open();
    });
  }

  /** Ends the connection and fails all calls. For good. */
  close(): void {
    this.#close("the client was closed");
  }

  call<A extends Bean, R extends Bean>(
    rpc: Rpc<A, R>,
    argument: A,
    options: CallOptions = {},
  ): Promise<R> {
    return this.#startCall(rpc, argument, options, (call) => {
      if (this.#state === "ready") {
        this.#connection?.submit(call);
      } else if (this.#state === "closed") {
        call.fail("notSent", ResultCode.Closed, "the client is closed");
      } else if (!this.#queue.addCall(call)) {
        call.fail("notSent", ResultCode.SendFail, "too many messages wait for a connection");
      }
    });
  }

  /** While there is no connection it waits for one, but not longer than calls do. */
  send<A extends Bean>(protocol: Protocol<A>, argument: A): boolean {
    const frame = encodeOneWay(protocol, argument);
    if (this.#state === "ready") return this.#connection?.sendFrame(frame) ?? false;
    if (this.#state === "closed" || frame.length > this.#limits.frameBytesMax) return false;
    return this.#queue.addMessage(frame, this.#options.timeoutMs ?? 5000, this.#clock);
  }

  /** Calls back for each such message from the server, in their order; the result ends it. */
  on<A extends Bean>(
    protocol: Protocol<A>,
    listener: (argument: A) => void | Promise<void>,
  ): () => void {
    return this.#dispatcher.on(protocol, listener);
  }

  /**
   * Answers requests from the server. A handler refuses by throwing an RpcError; anything else that
   * it throws is answered as an exception. Requests without a handler are refused.
   */
  handle<A extends Bean, R extends Bean>(
    rpc: Rpc<A, R>,
    handler: (argument: A) => R | Promise<R>,
  ): () => void {
    return this.#dispatcher.handle(rpc, handler);
  }

  /** Calls back when linkd reports an error: a message that was not delivered, a kick. */
  onReportError(listener: (report: BReportError) => void): () => void {
    return this.on(ReportError, listener);
  }

  onState(listener: (state: ClientState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => {
      this.#stateListeners.delete(listener);
    };
  }

  #open(): void {
    const WebSocket = this.#options.webSocket ?? platform.WebSocket;
    if (WebSocket === undefined) {
      const hint = "pass one: new ZezeClient({ webSocket: WebSocket }), with the one of npm's ws";
      this.#close(`there is no WebSocket here; ${hint}`);
      return;
    }
    this.#setState("connecting");
    this.#report = undefined;
    this.#retryAfterMs = undefined;
    let connection: Connection;
    try {
      const socket = new WebSocket(this.#nextUrl(this.#backoff.attempts));
      connection = new Connection(socket, this.#limits, this.#dispatcher, this.#clock, {
        opened: () => void this.#opened(connection),
        lost: (loss) => {
          this.#lost(loss);
        },
        unhandled: (moduleId, protocolId) => {
          this.#guard(() => this.#options.onUnhandled?.(moduleId, protocolId));
        },
      });
    } catch (error) {
      // Not a matter of the network: the url is no url.
      this.#close(error instanceof Error ? error.message : String(error));
      return;
    }
    this.#connection = connection;
    const timeoutMs = this.#options.connectTimeoutMs ?? 10_000;
    this.#cancelTimer = this.#clock.after(timeoutMs, () => {
      connection.close(`not connected and authenticated within ${timeoutMs} ms`);
    });
  }

  async #opened(connection: Connection): Promise<void> {
    this.#setState("authenticating");
    try {
      await this.#options.onConnected?.(this.#linkOf(connection));
    } catch (error) {
      if (!connection.isOpen) return;
      this.#reportProblem(error);
      connection.close(`onConnected failed: ${String(error)}`);
      return;
    }
    if (!connection.isOpen || this.#connection !== connection) return;
    this.#cancelTimer();
    this.#readySince = this.#clock.now();
    // Before anybody hears that it is ready, and sends more.
    this.#queue.drainTo(connection);
    this.#setState("ready");
    this.#connected?.resolve();
    this.#connected = undefined;
  }

  #linkOf(connection: Connection): Link {
    return {
      call: (rpc, argument, options = {}) =>
        this.#startCall(rpc, argument, options, (call) => {
          connection.submit(call);
        }),
      send: (protocol, argument) => connection.sendFrame(encodeOneWay(protocol, argument)),
    };
  }

  #startCall<A extends Bean, R extends Bean>(
    rpc: Rpc<A, R>,
    argument: A,
    options: CallOptions,
    start: (call: PendingCall) => void,
  ): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      const { moduleId, protocolId } = rpc;
      const sessionId = ++this.#lastSessionId;
      const family = FrameFamily.Request;
      const head = { moduleId, protocolId, family, resultCode: 0n, sessionId };
      const frame = encodeFrame(head, argument);
      const timeoutMs = options.timeoutMs ?? rpc.timeoutMs ?? this.#options.timeoutMs ?? 5000;
      const done = (result: Bean): void => {
        resolve(result as R); // Made by this rpc's newResult.
      };
      start(new PendingCall(sessionId, frame, rpc, timeoutMs, this.#clock, done, reject));
    });
  }

  #lost(loss: Loss): void {
    this.#cancelTimer();
    this.#connection = undefined;
    if (this.#state === "closed") return;
    if (this.#options.reconnect === false) {
      this.#close(loss.problem);
      return;
    }
    const heldMs = this.#readySince === undefined ? 0 : this.#clock.now() - this.#readySince;
    this.#readySince = undefined;
    if (heldMs >= (this.#options.stableMs ?? 10_000)) this.#backoff.reset();
    const delayMs = this.#backoff.next((attempt) => {
      const lost = { ...loss, report: this.#report, attempt };
      return this.#guard(() => this.#options.retryAfterMs?.(lost)) ?? this.#retryAfterMs;
    });
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#open();
    });
    this.#setState("waiting");
  }

  #close(problem: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#cancelTimer();
    this.#connection?.close(problem);
    this.#queue.fail(problem);
    this.#connected?.reject(new RpcError(problem, "notSent", ResultCode.Closed));
    this.#connected = undefined;
    this.#tellState();
  }

  #setState(state: ClientState): void {
    if (this.#state === "closed") return;
    this.#state = state;
    this.#tellState();
  }

  #tellState(): void {
    for (const listener of [...this.#stateListeners]) {
      this.#guard(() => {
        listener(this.#state);
      });
    }
  }

  /** Calls the application's code; what it throws is reported and stops nothing of ours. */
  #guard<T>(call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      this.#reportProblem(error);
      return undefined;
    }
  }

  #reportProblem(error: unknown): void {
    if (this.#options.onError === undefined) platform.console.error("zeze-client:", error);
    else this.#options.onError(error);
  }
}

function encodeOneWay<A extends Bean>(protocol: Protocol<A>, argument: A): Uint8Array {
  const { moduleId, protocolId } = protocol;
  const family = FrameFamily.OneWay;
  return encodeFrame({ moduleId, protocolId, family, resultCode: 0n, sessionId: 0n }, argument);
}

/** Of several servers each client begins with another one, and then takes the next. */
function urlChooser(url: Url, random: () => number): (attempt: number) => string {
  if (typeof url === "function") return url;
  const urls = typeof url === "string" ? [url] : url;
  let next = Math.floor(random() * urls.length);
  return () => urls[next++ % urls.length] ?? "";
}
