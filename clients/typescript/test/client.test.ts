// ZezeClient on connections that do what the test says, with time that passes when it says so.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  BReportError,
  BRetryAfter,
  type ClientOptions,
  type ClientState,
  EmptyBean,
  encodeFrame,
  errorCode,
  FrameFamily,
  KeepAlive,
  type LostConnection,
  ReportError,
  ResultCode,
  RetryAfter,
  RpcError,
  ZezeClient,
} from "zeze-client";

import * as Game from "../generated/wide/Game.js";
import { fakeNetwork, FakeSocket, oneWay } from "./support/fake_socket.js";
import { ManualClock, settled } from "./support/manual_clock.js";

const login = (account: string): Game.BLogin => new Game.BLogin({ account });
const role = (id: bigint): Game.BLoginResult => new Game.BLoginResult({ role: id });

/** A client with its network, clock and errors. */
class World {
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

function assertRpcError(error: unknown, expected: Partial<RpcError>): boolean {
  assert.ok(error instanceof RpcError, String(error));
  for (const [key, value] of Object.entries(expected)) {
    assert.equal(error[key as keyof RpcError], value, `${key} of ${error.message}`);
  }
  return true;
}

/** Fails with an RpcError that has these properties. */
function rejects(promise: Promise<unknown>, expected: Partial<RpcError>): Promise<void> {
  return assert.rejects(promise, (error) => assertRpcError(error, expected));
}

test("a call gets its answer, whatever the order of answers", async () => {
  const { client, ...world } = new World();
  const connected = client.connect("ws://game");
  const socket = world.sockets[0] as FakeSocket;
  socket.open();
  await connected;

  const first = client.call(Game.Login, login("ann"));
  const second = client.call(Game.Login, login("ben"));
  assert.deepEqual(
    socket.frames.map(({ sessionId }) => sessionId),
    [1n, 2n],
  );
  socket.answer(1, role(2n));
  socket.answer(0, role(1n));

  assert.equal((await first).role, 1n);
  assert.equal((await second).role, 2n);
  assert.equal(world.clock.pending, 0);
});

test("a refused call fails with the module's code and the result that came with it", async () => {
  const world = new World();
  await world.connect();
  const call = world.client.call(Game.Login, login(""));
  world.socket.answer(0, role(9n), errorCode(Game.moduleId, Game.Login.eNoAccount));
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof RpcError);
    assert.ok(error.is(Game.moduleId, Game.Login.eNoAccount));
    assert.equal(error.outcome, "answered");
    assert.equal(error.message, "wide.Game.Login: refused with code 1 of module 3");
    assert.ok(error.result instanceof Game.BLoginResult);
    assert.equal(error.result.role, 9n);
    return true;
  });
  const busy = world.client.call(Game.Login, login("ann"));
  world.socket.answer(1, new EmptyBean(), ResultCode.Busy);
  await rejects(busy, { resultCode: ResultCode.Busy, moduleId: 0, code: -19 });
});

test("what is sent on becoming ready comes behind what has waited for it", async () => {
  const world = new World();
  world.client.onState((state) => {
    if (state === "ready") world.client.send(Game.Say, login("second"));
  });
  const connected = world.client.connect("ws://game");
  world.client.send(Game.Say, login("first"));
  world.socket.open();
  await connected;

  const accounts = world.socket.frames.map(({ payload }) => {
    const said = new Game.BLogin();
    said.decode(payload);
    return said.account;
  });
  assert.deepEqual(accounts, ["first", "second"]);
});

test("a call without an answer fails after its time", async () => {
  const world = new World({ timeoutMs: 700 });
  await world.connect();
  const expected = { outcome: "timedOut", resultCode: ResultCode.Timeout } as const;
  const schema = rejects(world.client.call(Game.Login, login("ann")), expected);
  const clients = rejects(world.client.call(Game.Ping, new EmptyBean()), expected);
  const own = rejects(world.client.call(Game.Login, login("ann"), { timeoutMs: 10 }), expected);
  await world.clock.advance(10);
  await own;
  await world.clock.advance(690);
  await clients;
  assert.equal(world.clock.pending, 1);
  await world.clock.advance(2300);
  await schema;

  world.socket.answer(0, role(1n)); // Too late: dropped.
  assert.equal(world.client.state, "ready");
});

test("an answer to another question is dropped", async () => {
  const world = new World();
  await world.connect();
  const call = world.client.call(Game.Login, login("ann"));
  const head = { ...Game.Load, family: FrameFamily.Response, resultCode: 0n };
  world.socket.receive(encodeFrame({ ...head, sessionId: 1n }, role(1n)));
  world.socket.receive(encodeFrame({ ...head, ...Game.Login, sessionId: 2n }, role(2n)));
  world.socket.answer(0, role(3n));
  assert.equal((await call).role, 3n);
});

test("calls that were sent fail at once when the connection breaks", async () => {
  const world = new World();
  await world.connect();
  const call = world.client.call(Game.Login, login("ann"));
  world.socket.break(1006);
  await rejects(call, { outcome: "closed", resultCode: ResultCode.Closed });
  assert.equal(world.client.state, "waiting");
});

test("calls made without a connection go out when there is one", async () => {
  const world = new World();
  const early = world.client.call(Game.Login, login("early"));
  await world.connect();
  assert.equal(world.socket.frames.length, 1);
  world.socket.answer(0, role(1n));
  assert.equal((await early).role, 1n);

  world.socket.break();
  const meanwhile = world.client.call(Game.Login, login("meanwhile"));
  assert.ok(world.client.send(Game.Say, login("hello")));
  await world.clock.advance(250);
  world.socket.open();
  await settled();
  assert.deepEqual(
    world.socket.frames.map(({ protocolId }) => protocolId),
    [Game.Login.protocolId, Game.Say.protocolId],
  );
  world.socket.answer(0, role(2n));
  assert.equal((await meanwhile).role, 2n);
});

test("a call that waits for a connection for too long was never sent", async () => {
  const world = new World();
  void world.client.connect("ws://game").catch(() => undefined);
  const call = rejects(world.client.call(Game.Login, login("ann")), {
    outcome: "notSent",
    resultCode: ResultCode.Timeout,
  });
  assert.ok(world.client.send(Game.Say, login("hello")));
  await world.clock.advance(3000);
  await call;
  await world.clock.advance(2000);
  world.socket.open();
  await settled();
  assert.equal(world.client.state, "ready");
  assert.equal(world.socket.frames.length, 0);
});

test("each connection is authenticated before anything else is sent", async () => {
  const world = new World({
    onConnected: async (link) => {
      await link.call(Game.Login, login("token"));
    },
  });
  const waiting = world.client.call(Game.Ping, new EmptyBean());
  const connected = world.client.connect("ws://game");
  world.socket.open();
  await settled();
  assert.equal(world.client.state, "authenticating");
  assert.equal(world.socket.frames.length, 1);
  world.socket.answer(0, role(1n));
  await connected;
  assert.equal(world.socket.frames.length, 2);
  world.socket.answer(1, new EmptyBean());
  await waiting;

  world.socket.break();
  await world.clock.advance(250);
  world.socket.open();
  await settled();
  assert.equal(world.client.state, "authenticating");
  world.socket.answer(0, role(1n));
  await settled();
  assert.equal(world.client.state, "ready");
});

test("a connection that cannot be authenticated is given up and tried again", async () => {
  const world = new World({
    onConnected: async (link) => {
      await link.call(Game.Login, login("token"), { timeoutMs: 60_000 });
    },
  });
  void world.client.connect("ws://game");
  world.socket.open();
  world.socket.answer(0, role(0n), ResultCode.AuthFail);
  await settled();
  assert.equal(world.client.state, "waiting");
  assert.equal(world.socket.closedWith, 1000);
  assertRpcError(world.errors[0], { resultCode: ResultCode.AuthFail });

  // One that takes too long as well.
  await world.clock.advance(250);
  world.socket.open();
  await world.clock.advance(10_000);
  assert.equal(world.client.state, "waiting");
  await world.clock.advance(500);
  assert.equal(world.sockets.length, 3);
});

test("attempts are further and further apart, by chance and within a bound", async () => {
  const world = new World({ backoffMinMs: 100, backoffMaxMs: 1000, random: () => 0.75 });
  void world.client.connect("ws://game");
  for (const delayMs of [75, 150, 300, 600, 750, 750]) {
    const attempts = world.sockets.length;
    world.socket.fail("refused");
    await world.clock.advance(delayMs - 1);
    assert.equal(world.sockets.length, attempts, `before ${delayMs}`);
    await world.clock.advance(1);
    assert.equal(world.sockets.length, attempts + 1, `after ${delayMs}`);
  }

  // A connection that breaks soon does not count as success, one that holds does.
  world.socket.open();
  await settled();
  await world.clock.advance(9_999);
  world.socket.break();
  await world.clock.advance(749);
  assert.equal(world.client.state, "waiting");
  await world.clock.advance(1);
  world.socket.open();
  await settled();
  await world.clock.advance(10_000);
  world.socket.break();
  await world.clock.advance(75);
  assert.equal(world.client.state, "connecting");
});

test("what the server says about the next attempt is kept to", async () => {
  const losses: LostConnection[] = [];
  const world = new World({
    backoffMinMs: 100,
    retryAfterMs: (lost) => {
      losses.push(lost);
      return lost.report?.code === 3 ? 5000 : undefined;
    },
  });
  await world.connect();
  world.socket.tell(ReportError, new BReportError({ from: 0, code: 3, desc: "busy" }));
  world.socket.break(1013, "try again later");
  await world.clock.advance(5049);
  assert.equal(world.sockets.length, 1);
  await world.clock.advance(1);
  assert.equal(world.sockets.length, 2);
  assert.equal(losses[0]?.closeCode, 1013);
  assert.equal(losses[0]?.closeReason, "try again later");
  assert.equal(losses[0]?.report?.desc, "busy");

  world.socket.break(); // The report was about the other connection.
  await world.clock.advance(100);
  assert.equal(world.sockets.length, 3);
  assert.equal(losses[1]?.report, undefined);
  assert.equal(losses[1]?.attempt, 2);
});

test("a gateway with too many clients at once says when to come again", async () => {
  const world = new World();
  await world.connect();
  world.socket.tell(RetryAfter, new BRetryAfter({ milliseconds: 5000 }));
  world.socket.break();
  await world.clock.advance(5249);
  assert.equal(world.sockets.length, 1);
  await world.clock.advance(1);
  assert.equal(world.sockets.length, 2);

  world.socket.break(); // That was about the other connection.
  await world.clock.advance(1000);
  assert.equal(world.sockets.length, 3);
});

test("no gateway sends the client away for longer than it allows", async () => {
  const world = new World({ retryAfterMaxMs: 1000 });
  await world.connect();
  world.socket.tell(RetryAfter, new BRetryAfter({ milliseconds: 2 ** 31 - 1 }));
  world.socket.break();
  await world.clock.advance(1249);
  assert.equal(world.sockets.length, 1);
  await world.clock.advance(1);
  assert.equal(world.sockets.length, 2);
});

test("a server that cannot be reached is followed by the next immediately", async () => {
  const failed: string[] = [];
  const world = new World({ random: () => 0.5 });
  world.client.onAttemptFailed(({ url, problem }) => failed.push(`${url}: ${problem}`));
  void world.client.connect(["ws://a", "ws://b", "ws://c"]);
  world.socket.fail("refused");
  await world.clock.advance(0);
  assert.equal(world.sockets.length, 2);
  await world.clock.advance(10_000); // One that does not answer.
  assert.equal(world.sockets.length, 3);
  world.socket.break(); // All were tried: now the client rests.
  await world.clock.advance(249);
  assert.equal(world.sockets.length, 3);
  await world.clock.advance(1);
  assert.equal(world.sockets.length, 4);
  assert.deepEqual(failed, [
    "ws://b: it cannot be reached (1006, refused)",
    "ws://c: it does not answer within 10000 ms",
    "ws://a: it cannot be reached (1006)",
  ]);
});

test("connect fails within a bound, with what was tried and why it failed", async () => {
  const world = new World({ connectWithinMs: 5000, random: () => 0 });
  const connected = rejects(world.client.connect(["ws://a", "ws://b"]), {
    outcome: "notSent",
    resultCode: ResultCode.Timeout,
    message:
      "not connected within 5000 ms: ws://a: it cannot be reached (1006, refused); " +
      "ws://b: it cannot be reached (1006, no such host)",
  });
  const waiting = rejects(world.client.call(Game.Login, login("ann"), { timeoutMs: 60_000 }), {
    outcome: "notSent",
  });
  world.socket.fail("refused");
  await world.clock.advance(0);
  world.socket.fail("no such host");
  await world.clock.advance(5000);
  await connected;
  await waiting;
  assert.equal(world.client.state, "idle");
  assert.equal(world.clock.pending, 0);

  await world.connect(); // Another time.
  assert.equal(world.client.state, "ready");
});

test("a client that a newer login has replaced stays away until it is told to come back", async () => {
  const world = new World();
  const kicks: BReportError[] = [];
  world.client.onKicked((kick) => kicks.push(kick));
  await world.connect();
  const kick = new BReportError({ from: 1, code: 4, desc: "logged in elsewhere" });
  world.socket.tell(ReportError, kick);
  world.socket.break(1000);
  await world.clock.advance(3_600_000);
  assert.equal(world.client.state, "kicked");
  assert.equal(world.sockets.length, 1);
  assert.deepEqual(kicks, [kick]);
  assert.equal(world.client.send(Game.Say, login("hello")), false);
  await rejects(world.client.call(Game.Login, login("ann")), { outcome: "notSent" });

  world.client.reconnect();
  await world.clock.advance(0);
  world.socket.open();
  await settled();
  assert.equal(world.client.state, "ready");

  world.socket.tell(ReportError, new BReportError({ from: 1, code: 7, desc: "server stops" }));
  world.socket.break(1000);
  await world.clock.advance(1000);
  assert.equal(world.sockets.length, 3);
});

test("of several servers the next is tried, and clients begin with different ones", async () => {
  const urls = ["ws://a", "ws://b", "ws://c"];
  for (const [random, expected] of [
    [0, ["ws://a", "ws://b", "ws://c", "ws://a"]],
    [0.99, ["ws://c", "ws://a", "ws://b", "ws://c"]],
  ] as const) {
    const world = new World({ random: () => random });
    void world.client.connect(urls);
    for (let i = 0; i < 3; ++i) {
      world.socket.break();
      await world.clock.advance(5_000);
    }
    assert.deepEqual(
      world.sockets.map(({ url }) => url),
      expected,
    );
  }
});

test("messages come in their order, and a listener can stop listening", async () => {
  const world = new World();
  const heard: string[] = [];
  const stop = world.client.on(Game.Kick, (message) => {
    heard.push(message.account);
  });
  await world.connect();
  // Any number of frames in a message, and frames cut anywhere.
  const bytes = Buffer.concat(["a", "b", "c"].map((text) => oneWay(Game.Kick, login(text))));
  for (const byte of bytes) world.socket.receive(Uint8Array.of(byte));
  world.socket.receive(bytes);
  assert.deepEqual(heard, ["a", "b", "c", "a", "b", "c"]);
  stop();
  world.socket.receive(bytes);
  assert.equal(heard.length, 6);
});

test("an error in a listener is told, and harms nobody else", async () => {
  const world = new World();
  const heard: string[] = [];
  world.client.on(Game.Kick, () => {
    throw new Error("mine");
  });
  world.client.on(Game.Kick, async () => {
    await settled();
    throw new Error("mine, later");
  });
  world.client.on(Game.Kick, ({ account }) => {
    heard.push(account);
  });
  await world.connect();
  world.socket.tell(Game.Kick, login("a"));
  await settled();
  await settled();
  assert.deepEqual(heard, ["a"]);
  assert.deepEqual(world.errors.map(String), ["Error: mine", "Error: mine, later"]);
  assert.equal(world.client.state, "ready");
});

test("messages that nobody wants or that cannot be decoded are dropped", async () => {
  const unhandled: number[] = [];
  const world = new World({ onUnhandled: (_, protocolId) => unhandled.push(protocolId) });
  world.client.on(Game.Kick, () => assert.fail("it cannot be decoded"));
  await world.connect();
  world.socket.tell(Game.Say, login("a"));
  assert.deepEqual(unhandled, [Game.Say.protocolId]);
  world.socket.receive(
    encodeFrame(
      { ...Game.Kick, family: FrameFamily.OneWay, resultCode: 0n, sessionId: 0n },
      { encode: (out) => out.writeRaw(Uint8Array.of(0x13, 0xff)) },
    ),
  );
  assert.match(String(world.errors[0]), /DecodeError/);
  assert.equal(world.client.state, "ready");

  const call = world.client.call(Game.Login, login("ann"));
  world.socket.answer(0, { encode: (out) => out.writeByte(0x13), decode: () => undefined });
  await assert.rejects(call, { name: "DecodeError", message: /answer of wide.Game.Login/ });
});

test("requests of the server are answered", async () => {
  const world = new World();
  world.client.handle(Game.Login, async ({ account }) => {
    await settled();
    if (account === "nobody") throw new RpcError("", "answered", errorCode(3, 1));
    if (account === "broken") throw new Error("broken");
    return role(BigInt(account.length));
  });
  await world.connect();
  world.socket.ask(Game.Login, login("ann"), 100n);
  world.socket.ask(Game.Login, login("nobody"), 101n);
  world.socket.ask(Game.Login, login("broken"), -1n);
  world.socket.ask(Game.Ping, new EmptyBean(), 103n); // Nobody handles it.
  world.socket.ask(KeepAlive, new EmptyBean(), 104n);
  await settled();
  await settled();
  const answers = new Map(
    world.socket.frames.map((frame) => {
      assert.equal(frame.family, FrameFamily.Response);
      return [frame.sessionId, frame];
    }),
  );
  assert.equal(answers.get(100n)?.resultCode, 0n);
  assert.equal(answers.get(101n)?.resultCode, errorCode(3, 1));
  assert.equal(answers.get(-1n)?.resultCode, ResultCode.Exception);
  assert.equal(answers.get(103n)?.resultCode, ResultCode.NotImplement);
  assert.equal(answers.get(104n)?.resultCode, 0n);
  assert.deepEqual(world.errors.map(String), ["Error: broken"]);
});

test("what linkd reports is an event", async () => {
  const world = new World();
  const reports: BReportError[] = [];
  world.client.onReportError((report) => reports.push(report));
  await world.connect();
  world.socket.tell(ReportError, new BReportError({ from: 2, code: 7, desc: "not bound" }));
  assert.deepEqual(reports, [new BReportError({ from: 2, code: 7, desc: "not bound" })]);
});

test("silence is broken by a question, and ended by no answer", async () => {
  const world = new World({ keepAliveMs: 20_000, keepAliveTimeoutMs: 15_000 });
  await world.connect();
  await world.clock.advance(20_000);
  assert.equal(world.socket.frames.length, 1);
  assert.equal(world.socket.frames[0]?.protocolId, KeepAlive.protocolId);
  world.socket.answer(0, new EmptyBean());
  await world.clock.advance(19_999);
  assert.equal(world.client.state, "ready");

  // Traffic in both directions makes the question unnecessary, in one it does not.
  world.client.send(Game.Say, login("a"));
  world.socket.tell(Game.Say, login("a"));
  await world.clock.advance(1);
  assert.equal(world.socket.frames.length, 2);
  world.client.send(Game.Say, login("a"));
  await world.clock.advance(20_000);
  assert.equal(world.socket.frames.length, 4);
  await world.clock.advance(14_999);
  assert.equal(world.client.state, "ready");
  await world.clock.advance(1);
  assert.equal(world.client.state, "waiting");
  assert.equal(world.socket.closedWith, 1000);
});

test("a frame that is too big, or none, ends the connection", async () => {
  const world = new World({ frameBytesMax: 1000 });
  const bad: (Uint8Array | string)[] = [
    "text",
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0xe9, 3, 0, 0), // 1001 bytes are claimed.
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3), // A family between servers.
    Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), // No body at all.
  ];
  void world.client.connect("ws://game");
  for (const data of bad) {
    world.socket.open();
    await settled();
    const call = rejects(world.client.call(Game.Login, login("ann")), { outcome: "closed" });
    world.socket.receive(data);
    await call;
    assert.equal(world.socket.closedWith, 4002);
    world.socket.receive(oneWay(Game.Kick, login("after the end")));
    while (world.client.state !== "connecting") await world.clock.advance(100);
  }
});

test("a large frame is sent in messages that every server accepts", async () => {
  const world = new World();
  await world.connect();
  const account = "x".repeat(100_000);
  const call = world.client.call(Game.Login, login(account));
  assert.ok(world.socket.messages.length > 3);
  assert.ok(world.socket.messages.every((message) => message.length <= 32 * 1024));
  assert.equal(world.socket.frames.length, 1);
  world.socket.answer(0, role(1n));
  assert.equal((await call).role, 1n);
});

test("everything that waits has a bound", async () => {
  const world = new World({
    queuedMessagesMax: 2,
    queuedBytesMax: 1000,
    pendingCallsMax: 3,
    bufferedBytesMax: 2000,
    frameBytesMax: 1500,
  });
  const { client } = world;
  const notSent = { outcome: "notSent", resultCode: ResultCode.SendFail } as const;
  await rejects(client.call(Game.Login, login("x".repeat(1000))), notSent);
  assert.equal(client.send(Game.Say, login("x".repeat(1000))), false);
  const calls = [client.call(Game.Login, login("a")), client.call(Game.Login, login("b"))];
  await rejects(client.call(Game.Login, login("c")), notSent);
  assert.equal(client.send(Game.Say, login("c")), false);

  await world.connect();
  calls.push(client.call(Game.Login, login("c")));
  await rejects(client.call(Game.Login, login("d")), notSent);
  assert.ok(client.send(Game.Say, login("e")));
  assert.equal(client.send(Game.Say, login("x".repeat(1500))), false);
  world.socket.bufferedAmount = 1990;
  assert.equal(client.send(Game.Say, login("f")), false);

  calls.forEach((_, i) => {
    world.socket.answer(i, role(BigInt(i)));
  });
  await Promise.all(calls);
  await rejects(client.call(Game.Login, login("g")), notSent);
  world.socket.bufferedAmount = 0;
  const last = client.call(Game.Login, login("h"));
  world.socket.answer(4, role(5n));
  assert.equal((await last).role, 5n);
});

test("a closed client leaves nothing behind", async () => {
  const world = new World({ keepAliveMs: 1000 });
  await world.connect();
  const closed = { outcome: "closed", resultCode: ResultCode.Closed } as const;
  const sent = rejects(world.client.call(Game.Login, login("ann")), closed);
  world.client.close();
  await sent;
  assert.equal(world.client.state, "closed");
  assert.equal(world.clock.pending, 0);
  const after = { outcome: "notSent", resultCode: ResultCode.Closed } as const;
  await rejects(world.client.call(Game.Login, login("ann")), after);
  assert.equal(world.client.send(Game.Say, login("a")), false);
  await assert.rejects(world.client.connect("ws://game"), /connect\(\) is called once/);
  assert.equal(world.sockets.length, 1);
  assert.deepEqual(world.states, ["connecting", "authenticating", "ready", "closed"]);

  const waiting = new World();
  const connected = rejects(waiting.client.connect("ws://game"), { outcome: "notSent" });
  const queued = rejects(waiting.client.call(Game.Login, login("ann")), { outcome: "notSent" });
  waiting.client.send(Game.Say, login("a"));
  waiting.socket.break();
  waiting.client.close();
  await connected;
  await queued;
  assert.equal(waiting.clock.pending, 0);
});

test("without reconnection the first loss closes the client", async () => {
  const world = new World({ reconnect: false });
  const connected = world.client.connect("ws://game");
  world.socket.fail("connect ECONNREFUSED");
  await assert.rejects(connected, /ws:\/\/game: it cannot be reached \(1006, connect ECONNREFUSED\)/);
  assert.equal(world.client.state, "closed");
});

test("an argument that cannot be encoded fails the call and nothing else", async () => {
  const world = new World();
  await world.connect();
  const bad = new Game.BLogin({ account: 5 as unknown as string });
  await assert.rejects(world.client.call(Game.Login, bad), { message: /^account: 5 is no string/ });
  assert.throws(() => world.client.send(Game.Say, bad), { name: "EncodeError" });
  assert.equal(world.socket.frames.length, 0);
  assert.equal(world.client.state, "ready");
});

test("a url that is none closes the client", async () => {
  const { webSocket } = fakeNetwork();
  const Refusing = class extends webSocket {
    constructor(url: string) {
      super(url);
      throw new SyntaxError(`Invalid URL: ${url}`);
    }
  };
  const client = new ZezeClient({ webSocket: Refusing });
  await assert.rejects(client.connect("game"), /Invalid URL: game/);
  assert.equal(client.state, "closed");
});

test("hooks that throw do not stop the client", async () => {
  const world = new World({
    retryAfterMs: () => {
      throw new Error("hook");
    },
    onUnhandled: () => {
      throw new Error("hook");
    },
  });
  world.client.onState(() => {
    throw new Error("hook");
  });
  await world.connect();
  world.socket.tell(Game.Say, login("a"));
  assert.equal(world.client.state, "ready");
  world.socket.break();
  await world.clock.advance(250);
  world.socket.open();
  await settled();
  assert.equal(world.client.state, "ready");
  assert.ok(world.errors.every((error) => String(error) === "Error: hook"));
});
