// Where, when and how often ZezeClient connects.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  BReportError,
  BRetryAfter,
  type LostConnection,
  ReportError,
  ResultCode,
  RetryAfter,
} from "zeze-client";

import * as Game from "../generated/wide/Game.js";
import { login, rejects, World } from "./support/client_world.js";
import { settled } from "./support/manual_clock.js";

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

test("a client replaced by a newer login stays away until it is told to return", async () => {
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
