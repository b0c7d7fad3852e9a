import type { Bean } from "./bean.js";
import * as Role from "./builtin/Zeze/Builtin/Game/Online.js";
import * as Account from "./builtin/Zeze/Builtin/Online.js";
import type { Connection } from "./connection.js";
import { Dispatcher } from "./dispatcher.js";
import { FrameDecoder, FrameFamily } from "./frame.js";
import { NotifyReceiver } from "./notify_receiver.js";
import type { Clock } from "./platform.js";
import { type Protocol, protocolTypeId, type Rpc, RpcError } from "./protocol.js";

/** Who to log in as: a role in an online set, or one of the clients of the account. */
export type LoginAs =
  | { readonly roleId: bigint; readonly onlineSet?: string }
  | { readonly clientId: string };

/**
 * - fresh: reliable notifies begin with the next one. Those that were sent before and not handled
 *   yet will never come: the application fetches its whole state;
 * - resumed: reliable notifies go on without a gap.
 */
export type LoginOutcome = "fresh" | "resumed";

export interface LoginKeeperOptions {
  readonly clock: Clock;
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** Handled notifies are confirmed together, after this time. */
  readonly confirmDelayMs: number;
  /** How often the server is asked whether anything was lost on the way; 0: never. */
  readonly pollMs: number;
  readonly frameBytesMax: number;
  call<A extends Bean, R extends Bean>(
    connection: Connection,
    rpc: Rpc<A, R>,
    argument: A,
  ): Promise<R>;
  loggedIn(outcome: LoginOutcome): void;
  onError(error: unknown): void;
}

/** So many wait for no delay: the server keeps only so many that are not confirmed. */
const CONFIRM_BATCH = 64n;
/** What came before the answer to a login; the rest is asked for later. */
const EARLY_MAX = 256;

/**
 * Keeps a client logged in at the servers, over any number of connections, and hands on its
 * reliable notifies: once, in order, without a gap.
 *
 * The server numbers the notifies of a login and keeps them until they are confirmed. After a loss
 * the keeper resumes the login (ReLogin) with the number and the hash of what it has handled; the
 * server sends the rest, or refuses, and then a fresh login begins anew.
 */
export class LoginKeeper {
  readonly #options: LoginKeeperOptions;
  readonly #handlers: Dispatcher;
  readonly #receiver = new NotifyReceiver();
  #as: LoginAs | undefined;
  /** The receiver goes on with the next login; otherwise that is a fresh one. */
  #resumable = false;
  /** Changes with each connection and each login: answers of an older one are void. */
  #generation = 0;
  /** Cancel what is due later for this login. */
  readonly #timers = new Set<() => void>();
  #state: "out" | "beginning" | "resuming" | "in" = "out";
  #connection: Connection | undefined;
  /** The connection was logged in before. */
  #used = false;
  /** What has come before the answer to the login. */
  #early: Account.BReliableNotify[] = [];
  #confirmed = 0n;
  #calling = false;
  #wantSync = false;
  #confirmDue = false;
  #timerSet = false;
  /** The server has answered since the last poll. */
  #active = false;
  #delayMs = 0;

  constructor(options: LoginKeeperOptions, as: LoginAs | undefined) {
    this.#options = options;
    this.#as = as;
    this.#handlers = new Dispatcher((error) => {
      options.onError(error);
    });
  }

  get loggedIn(): boolean {
    return this.#state === "in";
  }

  /** A login that the connection has not been told of. */
  isDue(connection: Connection): boolean {
    return this.#as !== undefined && this.#connection !== connection;
  }

  on<A extends Bean>(
    protocol: Protocol<A>,
    listener: (argument: A) => void | Promise<void>,
  ): () => void {
    return this.#handlers.on(protocol, listener);
  }

  /** Logs in on the connection as this, or as before; later ones do the same. */
  async logIn(connection: Connection, as = this.#as): Promise<LoginOutcome> {
    if (as === undefined) throw new Error("nobody is to be logged in");
    if (this.#connection === connection) {
      if (this.#state === "in" && same(as, this.#as)) return "resumed";
      // What is on its way for the other login must not be taken for notifies of this one.
      throw new Error("this connection has a login already: log in on a new one (reconnect)");
    }
    if (!same(as, this.#as)) this.#resumable = false;
    const before = this.#as;
    this.#as = as;
    this.#connection = connection;
    this.#used = false;
    try {
      return await this.#enter();
    } catch (error) {
      // The first time: the caller decides, and the connection can be used for another login.
      if (before === undefined && this.#as === as) this.#as = undefined;
      if (this.#connection === connection && this.#state === "out") this.#connection = undefined;
      throw error;
    }
  }

  async logOut(): Promise<void> {
    const connection = this.#connection;
    const as = this.#as;
    this.#as = undefined;
    this.#resumable = false;
    const wasIn = this.#state === "in";
    this.#begin("out");
    if (connection === undefined || as === undefined || !wasIn) return;
    const rpc = "roleId" in as ? Role.Logout : Account.Logout;
    await this.#options.call(connection, rpc, rpc.newArgument());
  }

  /** The server on which the client was logged in has gone; the connection is still there. */
  serverLost(): void {
    if (this.#state === "in") void this.#resumeHere();
  }

  closed(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#begin("out");
    this.#connection = undefined;
  }

  notified(connection: Connection, notify: Account.BReliableNotify): void {
    if (this.#connection !== connection || this.#state === "out") return;
    if (this.#state !== "in") {
      if (this.#early.length < EARLY_MAX) this.#early.push(notify);
      return;
    }
    this.#take([notify]);
  }

  #begin(state: "out" | "beginning" | "resuming"): number {
    this.#state = state;
    this.#early = [];
    this.#calling = this.#wantSync = this.#confirmDue = this.#timerSet = this.#active = false;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    return ++this.#generation;
  }

  #after(ms: number, callback: () => void): void {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }

  async #enter(): Promise<LoginOutcome> {
    const connection = this.#connection;
    if (connection === undefined || this.#as === undefined) throw new Error("not connected");
    if (this.#resumable) {
      const generation = this.#begin("resuming");
      const index = this.#receiver.next;
      try {
        await this.#sendReLogin(connection, this.#as, index);
        this.#check(generation);
        this.#confirmed = index;
        return this.#entered("resumed");
      } catch (error) {
        this.#check(generation);
        this.#state = "out";
        if (!isVoid(error)) throw error;
        this.#resumable = false;
        // Notifies of the login before may still come here: then a fresh one needs another
        // connection.
        if (this.#used) {
          connection.close("a fresh login is needed");
          throw error;
        }
      }
    }
    const generation = this.#begin("beginning");
    try {
      await this.#sendLogin(connection, this.#as);
    } catch (error) {
      this.#check(generation);
      this.#state = "out";
      // It may have been done: notifies of that login must not come to the next one.
      if (!isAnswered(error)) connection.close("the login was not answered");
      throw error;
    }
    this.#check(generation);
    this.#receiver.reset();
    this.#confirmed = 0n;
    return this.#entered("fresh");
  }

  /** Nothing of this login is handled before loggedIn has been called. */
  #entered(outcome: LoginOutcome): LoginOutcome {
    this.#state = "in";
    this.#used = true;
    this.#resumable = true;
    const early = this.#early;
    this.#early = [];
    this.#pollLater();
    this.#options.loggedIn(outcome);
    this.#take(early);
    return outcome;
  }

  #check(generation: number): void {
    if (generation !== this.#generation) throw new Error("the connection has ended");
  }

  async #sendLogin(connection: Connection, as: LoginAs): Promise<void> {
    const { call } = this.#options;
    if ("roleId" in as) {
      const login = { RoleId: as.roleId, OnlineSetName: as.onlineSet ?? "" };
      await call(connection, Role.Login, new Role.BLogin(login));
    } else {
      await call(connection, Account.Login, new Account.BLogin({ ClientId: as.clientId }));
    }
  }

  async #sendReLogin(connection: Connection, as: LoginAs, index: bigint): Promise<void> {
    const { call } = this.#options;
    const handled = { ReliableNotifyConfirmIndex: index, ReliableNotifyHash: this.#receiver.hash };
    if ("roleId" in as) {
      const login = { RoleId: as.roleId, OnlineSetName: as.onlineSet ?? "", ...handled };
      await call(connection, Role.ReLogin, new Role.BReLogin(login));
    } else {
      const login = { ClientId: as.clientId, ...handled };
      await call(connection, Account.ReLogin, new Account.BReLogin(login));
    }
  }

  async #sendConfirm(
    connection: Connection,
    as: LoginAs,
    index: bigint,
    sync: boolean,
  ): Promise<void> {
    const { call } = this.#options;
    const handled = {
      ReliableNotifyConfirmIndex: index,
      Sync: sync,
      ReliableNotifyHash: this.#receiver.hash,
    };
    if ("roleId" in as) {
      await call(
        connection,
        Role.ReliableNotifyConfirm,
        new Role.BReliableNotifyConfirm(handled),
      );
    } else {
      await call(
        connection,
        Account.ReliableNotifyConfirm,
        new Account.BReliableNotifyConfirm({ ClientId: as.clientId, ...handled }),
      );
    }
  }

  /** On the same connection, until a server takes it. */
  async #resumeHere(): Promise<void> {
    const connection = this.#connection;
    if (this.#as === undefined || connection?.isOpen !== true) return;
    try {
      await this.#enter();
    } catch {
      if (this.#connection === connection && connection.isOpen) this.#resumeLater();
    }
  }

  #resumeLater(): void {
    this.#after(this.#nextDelayMs(), () => void this.#resumeHere());
  }

  #take(notifies: readonly Account.BReliableNotify[]): void {
    for (const { Notifies, ReliableNotifyIndex } of notifies) {
      let index = ReliableNotifyIndex;
      for (const frame of Notifies) {
        if (!this.#receiver.add(index++, frame)) this.#wantSync = true;
        this.#deliverAll();
      }
    }
    if (this.#receiver.hasGap) this.#wantSync = true;
    this.#pump();
  }

  #deliverAll(): void {
    for (;;) {
      const frame = this.#receiver.front();
      if (frame === undefined) return;
      this.#deliver(frame);
      this.#receiver.pop();
    }
  }

  #deliver(bytes: Uint8Array): void {
    try {
      new FrameDecoder(this.#options.frameBytesMax).push(bytes, (frame) => {
        if (frame.family === FrameFamily.OneWay) {
          this.#handlers.message(protocolTypeId(frame.moduleId, frame.protocolId), frame);
        }
        return true;
      });
    } catch (error) {
      this.#options.onError(error);
    }
  }

  /** One request at a time; what happens meanwhile goes into the next. */
  #pump(): void {
    const connection = this.#connection;
    const as = this.#as;
    if (this.#state !== "in" || this.#calling || connection === undefined || as === undefined) {
      return;
    }
    const index = this.#receiver.next;
    const handled = index - this.#confirmed;
    if (!this.#wantSync) {
      if (handled === 0n) return;
      if (handled < CONFIRM_BATCH && !this.#confirmDue) {
        this.#pumpAfter(this.#options.confirmDelayMs);
        return;
      }
    }
    const sync = this.#wantSync;
    const generation = this.#generation;
    this.#calling = true;
    this.#wantSync = this.#confirmDue = false;
    this.#sendConfirm(connection, as, index, sync).then(
      () => {
        if (generation !== this.#generation) return;
        this.#calling = false;
        this.#confirmed = index;
        this.#active = true;
        this.#delayMs = 0;
        // The answer to a sync is followed by what is missing; if not, it is asked for again.
        if (sync && this.#receiver.hasGap) this.#pumpAfter(this.#nextDelayMs());
        else this.#pump();
      },
      (error: unknown) => {
        if (generation !== this.#generation) return;
        this.#calling = false;
        if (isVoid(error)) {
          this.#resumable = false;
          this.#begin("out");
          connection.close("the reliable notifies cannot go on");
        } else if (isAnswered(error) && says(error, Account.ResultCodeNotLogin)) {
          this.#state = "out";
          this.#resumeLater();
        } else {
          this.#wantSync ||= sync;
          this.#pumpAfter(this.#nextDelayMs());
        }
      },
    );
  }

  #pumpAfter(delayMs: number): void {
    if (this.#timerSet) return;
    this.#timerSet = true;
    this.#after(delayMs, () => {
      this.#timerSet = false;
      this.#confirmDue = true;
      // What was asked for has not come.
      if (this.#receiver.hasGap) this.#wantSync = true;
      this.#pump();
    });
  }

  /**
   * Notifies may be lost between a server and the gateway, and the last one has no successor that
   * would show it.
   */
  #pollLater(): void {
    const { pollMs } = this.#options;
    if (pollMs <= 0) return;
    this.#after(pollMs, () => {
      if (!this.#active) this.#wantSync = true;
      this.#active = false;
      this.#pump();
      this.#pollLater();
    });
  }

  #nextDelayMs(): number {
    const { delayMinMs, delayMaxMs } = this.#options;
    this.#delayMs = Math.min(2 * Math.max(this.#delayMs, delayMinMs / 2), delayMaxMs);
    return this.#delayMs;
  }
}

function same(a: LoginAs, b: LoginAs | undefined): boolean {
  if (b === undefined) return false;
  if ("roleId" in a) {
    return "roleId" in b && a.roleId === b.roleId && (a.onlineSet ?? "") === (b.onlineSet ?? "");
  }
  return "clientId" in b && a.clientId === b.clientId;
}

function isAnswered(error: unknown): error is RpcError {
  return error instanceof RpcError && error.outcome === "answered";
}

/** Whether it is this code of one of the two modules, which have the same numbers. */
function says(error: RpcError, code: number): boolean {
  return error.is(Role.moduleId, code) || error.is(Account.moduleId, code);
}

/** The login cannot be resumed. */
function isVoid(error: unknown): boolean {
  if (!isAnswered(error)) return false;
  return (
    says(error, Account.ResultCodeReliableNotifyConfirmIndexOutOfRange) ||
    says(error, Account.ResultCodeOnlineDataNotFound)
  );
}
