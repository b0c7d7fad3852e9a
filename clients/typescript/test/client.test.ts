// ZezeClient on connections that do what the test says, with time that passes when it says so.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  BReportError,
  EmptyBean,
  encodeFrame,
  errorCode,
  FrameFamily,
  KeepAlive,
  ReportError,
  ResultCode,
  RpcError,
  ZezeClient,
} from "zeze-client";

import * as Game from "../generated/wide/Game.js";
import { assertRpcError, login, rejects, role, World } from "./support/client_world.js";
import { fakeNetwork, FakeSocket, oneWay } from "./support/fake_socket.js";
import { settled } from "./support/manual_clock.js";

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
  const notSent = { outcome: "notSent", resultCode: ResultCode.ErrorSendFail } as const;
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
  const problem = "ws://game: it cannot be reached (1006, connect ECONNREFUSED)";
  await assert.rejects(connected, { message: problem });
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
