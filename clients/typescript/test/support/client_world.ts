import assert from "node:assert/strict";

import { type ClientOptions, type ClientState, RpcError, ZezeClient } from "zeze-client";

import * as Game from "../../generated/wide/Game.js";
import { fakeNetwork, type FakeSocket } from "./fake_socket.js";
import { ManualClock } from "./manual_clock.js";

export const login = (account: string): Game.BLogin => new Game.BLogin({ account });
export const role = (id: bigint): Game.BLoginResult => new Game.BLoginResult({ role: id });

/** A client with its network, clock and errors. */
export class World {
  readonly clock = new ManualClock();
  readonly sockets: FakeSocket[];
  readonly client: ZezeClient;
  readonly errors: unknown[] = [];
  readonly states: ClientState[] = [];

  constructor(options: ClientOptions = {}) {
    const { sockets, webSocket } = fakeNetwork();
    this.sockets = sockets;
    this.client = new ZezeClient({
      webSocket,
      clock: this.clock,
      random: () => 0.5,
      keepAliveMs: 0,
      onError: (error) => this.errors.push(error),
      ...options,
    });
    this.client.onState((state) => this.states.push(state));
  }

  /** The newest connection. */
  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    assert.ok(socket, "the client has not connected");
    return socket;
  }

  async connect(): Promise<void> {
    const connected = this.client.connect("ws://game");
    this.socket.open();
    await connected;
  }
}

export function assertRpcError(error: unknown, expected: Partial<RpcError>): boolean {
  assert.ok(error instanceof RpcError, String(error));
  for (const [key, value] of Object.entries(expected)) {
    assert.equal(error[key as keyof RpcError], value, `${key} of ${error.message}`);
  }
  return true;
}

/** Fails with an RpcError that has these properties. */
export function rejects(promise: Promise<unknown>, expected: Partial<RpcError>): Promise<void> {
  return assert.rejects(promise, (error) => assertRpcError(error, expected));
}
