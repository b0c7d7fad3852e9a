import { Backoff } from "./backoff.js";
import type { Bean } from "./bean.js";
import * as GameOnline from "./builtin/Zeze/Builtin/Game/Online.js";
import { RetryAfter } from "./builtin/Zeze/Builtin/LinkdAuth.js";
import { BReportError, ReportError } from "./builtin/Zeze/Builtin/LinkdBase.js";
import * as Online from "./builtin/Zeze/Builtin/Online.js";
import { Connection, type ConnectionLimits, type Loss } from "./connection.js";
import { Dispatcher } from "./dispatcher.js";
import { encodeFrame, FrameFamily } from "./frame.js";
import { type LoginAs, LoginKeeper, type LoginOutcome } from "./login_keeper.js";
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
 * - kicked: a server has kicked the client, and it stays away until reconnect();
 * - closed: for good.
 */
export type ClientState =
  | "idle"
  | "connecting"
  | "authenticating"
  | "ready"
  | "waiting"
  | "kicked"
  | "closed";

/** How and after what a connection was lost. */
export interface LostConnection extends Loss {
  readonly url: string;
  /** False: it was never ready, the attempt came to nothing. */
  readonly wasReady: boolean;
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
  /**
   * Logs in at the servers, or resumes the login of the connection before: on this connection, and
   * by itself on later ones, once onConnected has ended. While it lasts, reliable notifies come
   * (ZezeClient.onReliable), and a server that is lost is replaced by another one. Fails as calls
   * do; a connection takes one login.
   */
  logIn(as: LoginAs): Promise<LoginOutcome>;
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
  /** Who to log in as on each connection, once onConnected has ended: as Link.logIn. */
  readonly login?: LoginAs;
  /**
   * How long to wait before the next attempt; undefined leaves it to what the gateway has said
   * (RetryAfter), or else to the back-off. Up to backoffMinMs are added, as many clients may have
   * been told the same.
   */
  readonly retryAfterMs?: (lost: LostConnection) => number | undefined;
  /** No gateway sends the client away for longer than this (RetryAfter). */
  readonly retryAfterMaxMs?: number;
  /** False: a lost connection closes the client. */
  readonly reconnect?: boolean;
  /**
   * Whether to connect again after a server has kicked the client. By default yes, unless the same
   * role or account has logged in elsewhere (code 4): two clients that both come back would kick
   * each other for ever.
   */
  readonly reconnectAfterKick?: (kick: BReportError) => boolean;
  /** What handlers throw, what onConnected throws, messages that cannot be decoded. */
  readonly onError?: (error: unknown) => void;
  /** One-way messages that nobody wants; they are dropped. */
  readonly onUnhandled?: (moduleId: number, protocolId: number) => void;

  /** Of calls that say nothing else. */
  readonly timeoutMs?: number;
  /** For opening the connection and onConnected together. */
  readonly connectTimeoutMs?: number;
  /** connect() fails if the first connection is not ready by then; 0: it never does. */
  readonly connectWithinMs?: number;
  /** Ask for a sign of life after so much silence; 0: never. */
  readonly keepAliveMs?: number;
  /** How often to ask the server for reliable notifies that were lost on the way; 0: never. */
  readonly notifyPollMs?: number;
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
/** What a server says to a client whose role or account has logged in elsewhere. */
const DUPLICATE_LOGIN = 4;
/** Urls whose last failure is remembered. */
const FAILURES_MAX = 8;

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
  readonly #keeper: LoginKeeper;
  readonly #loginListeners = new Set<(outcome: LoginOutcome) => void>();
  readonly #stateListeners = new Set<(state: ClientState) => void>();
  readonly #lostListeners = new Set<(lost: LostConnection) => void>();
  readonly #failedListeners = new Set<(lost: LostConnection) => void>();
  readonly #kickedListeners = new Set<(kick: BReportError) => void>();
  #state: ClientState = "idle";
  #urls: Urls = { count: 0, next: () => "" };
  /** Of this attempt. */
  #url = "";
  /** This attempt took too long. */
  #tooSlow = false;
  /** Urls in a row that could not be reached, without a rest. */
  #unreachable = 0;
  /** The last failure of each url, the oldest first; bounded. */
  readonly #failures = new Map<string, string>();
  #connection: Connection | undefined;
  #report: BReportError | undefined;
  /** After which the client stays away. */
  #kick: BReportError | undefined;
  /** What the gateway of this connection has asked for. */
  #retryAfterMs: number | undefined;
  #lastSessionId = 0n;
  #readySince: number | undefined;
  /** Of the attempt under way, or of the wait for the next one. */
  #cancelTimer: () => void = () => undefined;
  #cancelConnectBound: () => void = () => undefined;
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
    this.#keeper = new LoginKeeper(
      {
        clock: this.#clock,
        delayMinMs: this.#backoff.minMs,
        delayMaxMs: this.#backoff.maxMs,
        confirmDelayMs: 100,
        pollMs: options.notifyPollMs ?? 30_000,
        frameBytesMax: this.#limits.frameBytesMax,
        call: (connection, rpc, argument) => this.#linkOf(connection).call(rpc, argument),
        loggedIn: (outcome) => {
          this.#tell(this.#loginListeners, outcome);
        },
        onError: (error) => {
          this.#reportProblem(error);
        },
      },
      options.login,
    );
    const notified = (notify: Online.BReliableNotify): void => {
      if (this.#connection !== undefined) this.#keeper.notified(this.#connection, notify);
    };
    this.on(Online.SReliableNotify, notified);
    this.on(GameOnline.SReliableNotify, notified);
    this.on(ReportError, (report) => {
      this.#report = report;
      const { FromLink, CodeProviderBroken } = BReportError;
      if (report.from === FromLink && report.code === CodeProviderBroken) this.#keeper.serverLost();
      if (report.from !== BReportError.FromProvider) return;
      const comesBack = options.reconnectAfterKick ?? ((kick) => kick.code !== DUPLICATE_LOGIN);
      if (this.#guard(() => comesBack(report)) === false) this.#kick = report;
    });
    this.on(RetryAfter, ({ milliseconds }) => {
      this.#retryAfterMs = Math.min(milliseconds, options.retryAfterMaxMs ?? 120_000);
    });
  }

  get state(): ClientState {
    return this.#state;
  }

  /**
   * Connects, and from then on stays connected until close(). Resolves when the first connection is
   * ready. Fails if that takes longer than connectWithinMs, however many attempts; the message has
   * the last failure of each url, and the client is idle again. Fails as well if the client is
   * closed, or kicked and stays away.
   */
  connect(url: Url): Promise<void> {
    if (this.#state !== "idle") {
      return Promise.reject(new Error(`connect() is called once; the client is ${this.#state}`));
    }
    this.#urls = urlsOf(url, this.#random);
    this.#failures.clear();
    return new Promise((resolve, reject) => {
      this.#connected = { resolve, reject };
      const boundMs = this.#options.connectWithinMs ?? 30_000;
      if (boundMs > 0) {
        this.#cancelConnectBound = this.#clock.after(boundMs, () => {
          this.#giveUp(`not connected within ${boundMs} ms: ${this.#describeFailures()}`);
        });
      }
      this.#open();
    });
  }

  /**
   * Ends the present connection and connects again, not before `atLeastMs`; also after a kick.
   * Nothing happens if connect() was not called before, or the client was closed.
   */
  reconnect(atLeastMs = 0): void {
    if (this.#state === "idle" || this.#state === "closed") return;
    this.#retryAfterMs = atLeastMs;
    if (this.#connection !== undefined) {
      this.#kick = undefined;
      this.#connection.close("the client connects again");
      return;
    }
    this.#cancelTimer();
    this.#openAfter(atLeastMs);
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
      } else if (this.#state === "closed" || this.#state === "kicked") {
        call.fail("notSent", ResultCode.Closed, `the client is ${this.#state}`);
      } else if (!this.#queue.addCall(call)) {
        call.fail("notSent", ResultCode.ErrorSendFail, "too many messages wait for a connection");
      }
    });
  }

  /** While there is no connection it waits for one, but not longer than calls do. */
  send<A extends Bean>(protocol: Protocol<A>, argument: A): boolean {
    const frame = encodeOneWay(protocol, argument);
    if (this.#state === "ready") return this.#connection?.sendFrame(frame) ?? false;
    if (this.#state === "closed" || this.#state === "kicked") return false;
    if (frame.length > this.#limits.frameBytesMax) return false;
    return this.#queue.addMessage(frame, this.#options.timeoutMs ?? 5000, this.#clock);
  }

  logIn(as: LoginAs): Promise<LoginOutcome> {
    const connection = this.#connection;
    if (this.#state === "ready" && connection !== undefined) {
      return this.#keeper.logIn(connection, as);
    }
    const problem = "there is no connection: log in within onConnected, or by the option login";
    return Promise.reject(new RpcError(problem, "notSent", ResultCode.Closed));
  }

  /** Ends the login; later connections have none. */
  logOut(): Promise<void> {
    return this.#keeper.logOut();
  }

  get loggedIn(): boolean {
    return this.#keeper.loggedIn;
  }

  /**
   * Calls back for each reliable notify of this type: once, in the order in which servers sent
   * them, without a gap, over any number of connections, gateways and servers; from a "fresh" login
   * to the next. What a listener has returned from is confirmed to the server.
   */
  onReliable<A extends Bean>(
    protocol: Protocol<A>,
    listener: (argument: A) => void | Promise<void>,
  ): () => void {
    return this.#keeper.on(protocol, listener);
  }

  /** Logged in, before anything of that login is handled. After "fresh" fetch the whole state. */
  onLogin(listener: (outcome: LoginOutcome) => void): () => void {
    return added(this.#loginListeners, listener);
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
    return added(this.#stateListeners, listener);
  }

  /** A connection that was ready has ended. */
  onLost(listener: (lost: LostConnection) => void): () => void {
    return added(this.#lostListeners, listener);
  }

  /** An attempt came to nothing; the next one follows. */
  onAttemptFailed(listener: (lost: LostConnection) => void): () => void {
    return added(this.#failedListeners, listener);
  }

  /** A server has kicked the client, and it does not connect again until reconnect(). */
  onKicked(listener: (kick: BReportError) => void): () => void {
    return added(this.#kickedListeners, listener);
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
    this.#kick = undefined;
    this.#tooSlow = false;
    this.#retryAfterMs = undefined;
    let connection: Connection;
    try {
      this.#url = this.#urls.next(this.#backoff.attempts);
      const socket = new WebSocket(this.#url);
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
      this.#tooSlow = true;
      const what = connection.isOpen ? "onConnected has not ended" : "it does not answer";
      connection.close(`${what} within ${timeoutMs} ms`);
    });
  }

  async #opened(connection: Connection): Promise<void> {
    this.#setState("authenticating");
    try {
      await this.#options.onConnected?.(this.#linkOf(connection));
      if (connection.isOpen && this.#keeper.isDue(connection)) await this.#keeper.logIn(connection);
    } catch (error) {
      if (!connection.isOpen) return;
      this.#reportProblem(error);
      connection.close(`not let in: ${String(error)}`);
      return;
    }
    if (!connection.isOpen || this.#connection !== connection) return;
    this.#cancelTimer();
    this.#cancelConnectBound();
    this.#unreachable = 0;
    this.#failures.clear();
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
      logIn: (as) => this.#keeper.logIn(connection, as),
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
    if (this.#connection !== undefined) this.#keeper.closed(this.#connection);
    this.#connection = undefined;
    if (this.#state === "closed" || this.#state === "idle") return;
    const wasReady = this.#readySince !== undefined;
    const heldMs = this.#readySince === undefined ? 0 : this.#clock.now() - this.#readySince;
    this.#readySince = undefined;
    if (heldMs >= (this.#options.stableMs ?? 10_000)) this.#backoff.reset();
    this.#noteFailure(loss.problem);
    const attempt = this.#backoff.attempts + 1;
    const lost = { ...loss, url: this.#url, wasReady, report: this.#report, attempt };
    if (this.#options.reconnect === false) {
      this.#close(`${this.#url}: ${loss.problem}`);
    } else if (this.#kick !== undefined) {
      this.#stayAway(this.#kick);
    } else {
      this.#openAfter(this.#delayAfter(lost));
    }
    this.#tell(wasReady ? this.#lostListeners : this.#failedListeners, lost);
    if (this.#state === "kicked") this.#tell(this.#kickedListeners, this.#kick as BReportError);
  }

  #delayAfter(lost: LostConnection): number {
    const wished = this.#guard(() => this.#options.retryAfterMs?.(lost)) ?? this.#retryAfterMs;
    // The next url may be better; when all were tried, it is time for a rest.
    const unreachable = this.#state === "connecting" || this.#tooSlow;
    const others = unreachable && ++this.#unreachable < this.#urls.count;
    if (others && wished === undefined) return 0;
    this.#unreachable = 0;
    return this.#backoff.next(wished);
  }

  #openAfter(delayMs: number): void {
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#open();
    });
    this.#setState("waiting");
  }

  /** Until reconnect(). */
  #stayAway(kick: BReportError): void {
    const problem = `kicked with code ${kick.code} (${kick.desc}); reconnect() comes back`;
    this.#queue.fail(problem);
    this.#setState("kicked");
    this.#failConnect(problem, ResultCode.Closed);
  }

  /** The first connection takes too long. */
  #giveUp(problem: string): void {
    this.#cancelTimer();
    const connection = this.#connection;
    this.#setState("idle");
    connection?.close(problem);
    this.#queue.fail(problem);
    this.#failConnect(problem, ResultCode.Timeout);
  }

  #failConnect(problem: string, resultCode: bigint): void {
    this.#cancelConnectBound();
    this.#connected?.reject(new RpcError(problem, "notSent", resultCode));
    this.#connected = undefined;
  }

  #noteFailure(problem: string): void {
    this.#failures.delete(this.#url);
    this.#failures.set(this.#url, problem);
    if (this.#failures.size <= FAILURES_MAX) return;
    for (const oldest of this.#failures.keys()) {
      this.#failures.delete(oldest);
      return;
    }
  }

  #describeFailures(): string {
    if (this.#failures.size === 0) return `${this.#url}: it does not answer`;
    return [...this.#failures].map(([url, problem]) => `${url}: ${problem}`).join("; ");
  }

  #close(problem: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#cancelTimer();
    this.#connection?.close(problem);
    this.#queue.fail(problem);
    this.#failConnect(problem, ResultCode.Closed);
    this.#tell(this.#stateListeners, this.#state);
  }

  #setState(state: ClientState): void {
    if (this.#state === "closed") return;
    this.#state = state;
    this.#tell(this.#stateListeners, state);
  }

  #tell<T>(listeners: ReadonlySet<(news: T) => void>, news: T): void {
    for (const listener of [...listeners]) {
      this.#guard(() => {
        listener(news);
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

function added<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

interface Urls {
  readonly count: number;
  readonly next: (attempt: number) => string;
}

/** Of several servers each client begins with another one, and then takes the next. */
function urlsOf(url: Url, random: () => number): Urls {
  if (typeof url === "function") return { count: 1, next: url };
  const urls = typeof url === "string" ? [url] : url;
  let next = Math.floor(random() * urls.length);
  return { count: urls.length, next: () => urls[next++ % urls.length] ?? "" };
}
