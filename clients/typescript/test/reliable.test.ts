// Logins and reliable notifies of ZezeClient, against servers that do what the test says.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  authenticateBy,
  type Bean,
  BReportError,
  EmptyBean,
  encodeFrame,
  errorCode,
  type Frame,
  FrameFamily,
  GameOnline,
  LinkdAuth,
  type LoginOutcome,
  Online,
  ReportError,
  RpcError,
  tokenFromHex,
  tokenOfAccount,
  ZezeClient,
} from "zeze-client";

import * as Game from "../generated/wide/Game.js";
import { fakeNetwork, type FakeSocket, oneWay } from "./support/fake_socket.js";
import { ManualClock, settled } from "./support/manual_clock.js";
import { Random } from "./support/random.js";

const SAID = 1n << 32n;
const LOG_IN_AFRESH = errorCode(GameOnline.moduleId, 6);
const NOT_LOGGED_IN = errorCode(GameOnline.moduleId, 7);

/** FNV-1a, as zeze/messages/notify_hash.h has it. */
function hashOf(frames: readonly Uint8Array[]): bigint {
  let hash = 2166136261n;
  for (const frame of frames) {
    for (const byte of frame) hash = ((hash ^ BigInt(byte)) * 16777619n) & 0xffffffffn;
  }
  return SAID | hash;
}

/** The servers with one role, and a client of theirs. */
class World {
  readonly clock = new ManualClock();
  readonly sockets: FakeSocket[];
  readonly client: ZezeClient;
  readonly seen: string[] = [];
  readonly story: string[] = [];
  /** All since the login. */
  frames: Uint8Array[] = [];
  confirmed = 0;
  /** Codes of the next answers. */
  readonly answers: bigint[] = [];
  #loggedIn: FakeSocket | undefined;
  readonly #answered = new Map<FakeSocket, number>();

  constructor(login = true) {
    const { sockets, webSocket } = fakeNetwork();
    this.sockets = sockets;
    this.client = new ZezeClient({
      webSocket,
      clock: this.clock,
      random: () => 0.5,
      keepAliveMs: 0,
      backoffMinMs: 20,
      backoffMaxMs: 40,
      ...(login ? { login: { roleId: 7n } } : {}),
      onError: () => undefined, // Logins that are refused for a while.
    });
    this.client.onReliable(Game.Kick, ({ account }) => {
      this.seen.push(account);
    });
    this.client.onLogin((outcome: LoginOutcome) => {
      this.seen.push(outcome);
    });
  }

  async connect(): Promise<void> {
    const connected = this.client.connect("ws://game");
    await this.run(0);
    await connected;
  }

  /** Time passes; the servers answer what comes. */
  async run(ms: number): Promise<void> {
    for (let step = 0; step <= ms; step += 5) {
      await this.clock.advance(step === 0 ? 0 : 5);
      const socket = this.sockets.at(-1);
      if (socket === undefined) continue;
      if (!this.#answered.has(socket)) {
        this.#answered.set(socket, 0);
        socket.open();
        await settled();
      }
      for (;;) {
        const at = this.#answered.get(socket) ?? 0;
        const frame = socket.frames[at];
        if (frame === undefined || socket.closedWith !== undefined) break;
        this.#answered.set(socket, at + 1);
        this.#answer(socket, frame);
        await settled();
      }
    }
  }

  notify(text: string, lost = false): void {
    this.frames.push(oneWay(Game.Kick, new Game.BLogin({ account: text })));
    if (!lost) this.send(this.frames.length - 1);
  }

  send(index: number, count = 1): void {
    const notify = new Online.BReliableNotify({
      Notifies: this.frames.slice(index, index + count),
      ReliableNotifyIndex: BigInt(index),
    });
    if (this.#loggedIn?.closedWith !== undefined) return;
    this.#loggedIn?.tell(GameOnline.SReliableNotify, notify);
  }

  cut(): void {
    this.#loggedIn = undefined;
    this.sockets.at(-1)?.break();
  }

  loseServer(): void {
    this.#loggedIn?.tell(ReportError, new BReportError({ from: 0, code: 4 }));
    this.#loggedIn = undefined;
  }

  #answer(socket: FakeSocket, frame: Frame): void {
    const { moduleId, protocolId, sessionId, payload } = frame;
    let code = this.answers.shift() ?? 0n;
    let rest = false;
    if (protocolId === GameOnline.Login.protocolId) {
      this.story.push("login");
      if (code === 0n) {
        this.frames = [];
        this.confirmed = 0;
        this.#loggedIn = socket;
      }
    } else if (protocolId === GameOnline.ReLogin.protocolId) {
      const argument = read(new GameOnline.BReLogin(), payload);
      this.story.push(`relogin ${argument.ReliableNotifyConfirmIndex}`);
      if (code === 0n) code = this.#confirm(argument);
      if (code === 0n) this.#loggedIn = socket;
      rest = code === 0n;
    } else {
      const argument = read(new GameOnline.BReliableNotifyConfirm(), payload);
      if (argument.Sync) this.story.push("sync");
      if (code === 0n) code = this.#loggedIn === socket ? 0n : NOT_LOGGED_IN;
      if (code === 0n) code = this.#confirm(argument);
      rest = code === 0n && argument.Sync;
    }
    const family = FrameFamily.Response;
    const head = { moduleId, protocolId, family, resultCode: code, sessionId };
    socket.receive(encodeFrame(head, new EmptyBean()));
    if (rest && this.frames.length > this.confirmed) {
      this.send(this.confirmed, this.frames.length - this.confirmed);
    }
  }

  #confirm(handled: { ReliableNotifyConfirmIndex: bigint; ReliableNotifyHash: bigint }): bigint {
    const index = Number(handled.ReliableNotifyConfirmIndex);
    if (index < this.confirmed || index > this.frames.length) return LOG_IN_AFRESH;
    if (hashOf(this.frames.slice(0, index)) !== handled.ReliableNotifyHash) return LOG_IN_AFRESH;
    this.confirmed = index;
    return 0n;
  }
}

function read<B extends Bean>(bean: B, payload: Frame["payload"]): B {
  bean.decode(payload);
  return bean;
}

test("each connection is authenticated with a new token", async () => {
  const { sockets, webSocket } = fakeNetwork();
  const clock = new ManualClock();
  let tokens = 0;
  const client = new ZezeClient({
    webSocket,
    clock,
    random: () => 0,
    keepAliveMs: 0,
    onConnected: authenticateBy(() => tokenOfAccount(`ann ${++tokens}`), 5n),
  });
  const connected = client.connect("ws://game");
  for (const expected of ["ann 1", "ann 2"]) {
    sockets.at(-1)?.open();
    await settled();
    const frame = sockets.at(-1)?.frames[0];
    assert.ok(frame);
    assert.equal(frame.protocolId, LinkdAuth.Auth.protocolId);
    const { token, appVersion } = read(new LinkdAuth.BAuth(), frame.payload);
    assert.equal(Buffer.from(token).toString(), expected);
    assert.equal(appVersion, 5n);
    sockets.at(-1)?.answer(0, new LinkdAuth.BAuthResult({ account: "ann" }));
    await settled();
    assert.equal(client.state, "ready");
    sockets.at(-1)?.break();
    await clock.advance(0);
  }
  await connected;
  client.close();
  assert.deepEqual(tokenFromHex("00fF\n"), Uint8Array.of(0, 255));
  for (const wrong of ["", "0", "0x"]) assert.throws(() => tokenFromHex(wrong), /hexadecimal/);
});

test("notifies come in order and are confirmed", async () => {
  const world = new World();
  await world.connect();
  for (const text of ["a", "b", "c"]) world.notify(text);
  assert.deepEqual(world.seen, ["fresh", "a", "b", "c"]);
  await world.run(200);
  assert.equal(world.confirmed, 3);
  assert.ok(world.client.loggedIn);
});

test("a lost connection is resumed", async () => {
  const world = new World();
  await world.connect();
  world.notify("a");
  world.cut();
  world.notify("b");
  world.notify("c");
  await world.run(300);
  assert.deepEqual(world.seen, ["fresh", "a", "resumed", "b", "c"]);
  assert.deepEqual(world.story, ["login", "relogin 1"]);
  assert.equal(world.confirmed, 3);
});

test("a gap is asked for, and duplicates and swapped ones are seen once", async () => {
  const world = new World();
  await world.connect();
  for (const text of ["a", "b", "c", "d"]) world.notify(text, true);
  for (const index of [2, 0, 0, 2, 1, 0, 1]) world.send(index);
  assert.deepEqual(world.seen, ["fresh", "a", "b", "c"]);
  world.notify("e");
  await world.run(300);
  assert.deepEqual(world.seen, ["fresh", "a", "b", "c", "d", "e"]);
  assert.equal(world.confirmed, 5);
});

test("the last one that was lost is found by asking now and then", async () => {
  const world = new World();
  await world.connect();
  world.notify("a", true);
  await world.run(31_000);
  assert.deepEqual(world.seen, ["fresh", "a"]);
});

test("any number of notifies can have waited", async () => {
  const world = new World();
  await world.connect();
  world.cut();
  for (let i = 0; i < 3000; ++i) world.notify(`${i}`, true);
  await world.run(300);
  assert.equal(world.seen.length, 3002);
  assert.equal(world.confirmed, 3000);
});

test("a lost server is replaced on the same connection", async () => {
  const world = new World();
  await world.connect();
  world.notify("a");
  world.answers.push(-9n, -10n);
  world.loseServer();
  world.notify("b");
  await world.run(500);
  assert.deepEqual(world.seen, ["fresh", "a", "resumed", "b"]);
  assert.equal(world.sockets.length, 1);
});

test("a past that has changed begins afresh", async () => {
  const world = new World();
  await world.connect();
  world.notify("a");
  await world.run(200);
  world.notify("taken back");
  world.cut();
  world.frames.pop();
  world.notify("another");
  world.notify("b");
  await world.run(200);
  world.notify("c");
  await world.run(200);
  assert.deepEqual(world.seen, ["fresh", "a", "taken back", "fresh", "c"]);
});

test("a refused confirmation begins afresh on a new connection", async () => {
  const world = new World();
  await world.connect();
  world.answers.push(LOG_IN_AFRESH);
  world.notify("a");
  await world.run(300);
  world.notify("b");
  assert.deepEqual(world.seen, ["fresh", "a", "fresh", "b"]);
  assert.equal(world.sockets.length, 2);
  world.client.close();
  assert.equal(world.clock.pending, 0);
});

test("a server that has forgotten the login is told again", async () => {
  const world = new World();
  await world.connect();
  world.answers.push(NOT_LOGGED_IN);
  world.notify("a");
  await world.run(400);
  assert.deepEqual(world.seen, ["fresh", "a", "resumed"]);
  assert.equal(world.confirmed, 1);
});

test("a login can come later, and a refused one is the caller's affair", async () => {
  const world = new World(false);
  await world.connect();
  assert.equal(world.client.loggedIn, false);
  world.answers.push(errorCode(200, 3));
  const refused = assert.rejects(world.client.logIn({ roleId: 8n }), (error) => {
    assert.ok(error instanceof RpcError);
    return error.is(200, 3);
  });
  await world.run(10);
  await refused;
  assert.equal(world.client.state, "ready");

  const login = world.client.logIn({ roleId: 7n });
  await world.run(10);
  assert.equal(await login, "fresh");
  world.notify("a");
  world.cut();
  await world.run(100);
  assert.deepEqual(world.seen, ["fresh", "a", "resumed"]);
});

test("nothing is missed or seen twice, whatever breaks", async () => {
  const random = new Random(20261116);
  const world = new World();
  await world.connect();
  const many = 1000;
  for (let i = 0; i < many; ++i) {
    world.notify(`${i}`, random.below(20) === 0);
    switch (random.below(60)) {
      case 0:
        world.cut();
        break;
      case 1:
        world.loseServer();
        break;
      case 2:
        world.send(Math.max(world.confirmed, i - random.below(3)));
        break;
      case 3:
        world.answers.push(-10n);
        break;
      case 4:
        world.answers.push(NOT_LOGGED_IN);
        break;
      default:
        break;
    }
    if (random.below(4) === 0) await world.run(5 * random.below(10));
  }
  await world.run(60_000);
  const numbers = world.seen.filter((what) => what !== "resumed");
  assert.deepEqual(numbers, ["fresh", ...Array.from({ length: many }, (_, i) => `${i}`)]);
  assert.equal(world.confirmed, many);
});
