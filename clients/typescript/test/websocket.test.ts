// The client on real WebSockets, with the server and the sockets of the npm package ws.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";

import { WebSocket as NodeWebSocket } from "ws";
import {
  type ClientOptions,
  type ClientState,
  EmptyBean,
  ResultCode,
  RpcError,
  type WebSocketConstructor,
  ZezeClient,
} from "zeze-client";

import * as Game from "../generated/wide/Game.js";
import { GameServer } from "./support/game_server.js";
import { Random } from "./support/random.js";

const login = (account: string): Game.BLogin => new Game.BLogin({ account });

/** Both are gone when the test ends, however it ends. */
function makeClient(context: test.TestContext, options: ClientOptions = {}): ZezeClient {
  const webSocket: WebSocketConstructor = NodeWebSocket;
  const client = new ZezeClient({ webSocket, backoffMinMs: 10, backoffMaxMs: 50, ...options });
  context.after(() => {
    client.close();
  });
  return client;
}

async function startServer(context: test.TestContext, port = 0): Promise<GameServer> {
  const server = await GameServer.start(port);
  context.after(() => server.stop());
  return server;
}

// The sockets of browsers fit as well.
const ofBrowsers: WebSocketConstructor | undefined = (
  globalThis as { WebSocket?: typeof WebSocket }
).WebSocket;

function reached(client: ZezeClient, state: ClientState): Promise<void> {
  return new Promise((resolve) => {
    if (client.state === state) {
      resolve();
      return;
    }
    const stop = client.onState((now) => {
      if (now !== state) return;
      stop();
      resolve();
    });
  });
}

async function passMessages(context: test.TestContext, options: ClientOptions): Promise<void> {
  const server = await startServer(context);
  const client = makeClient(context, options);
  await client.connect(server.url);
  assert.equal((await client.call(Game.Login, login("ann"))).role, 3n);
  assert.equal((await client.call(Game.Login, login("x".repeat(1_000_000)))).role, 1_000_000n);
  await assert.rejects(client.call(Game.Ping, new EmptyBean()), {
    resultCode: ResultCode.NotImplement,
  });

  const heard: string[] = [];
  const last = new Promise<void>((resolve) => {
    client.on(Game.Kick, ({ account }) => {
      heard.push(account);
      if (account === "end") resolve();
    });
  });
  const large = "y".repeat(1_500_000);
  for (const text of ["a", large, "end"]) server.tellAll(Game.Kick, login(text));
  await last;
  assert.deepEqual(heard, ["a", large, "end"]);

  client.send(Game.Say, login("bye"));
  await client.call(Game.Login, login("ben")); // Behind it.
  assert.deepEqual(server.said, ["bye"]);
}

test("calls, answers and messages pass, small and large", (context) => passMessages(context, {}));

test("the same with the platform's own WebSocket", async (context) => {
  if (ofBrowsers === undefined) context.skip("this Node.js has none");
  else await passMessages(context, { webSocket: ofBrowsers });
});

test("after the death of a server its successor is found and told who we are", async (context) => {
  let server = await startServer(context);
  const { port } = server;
  const client = makeClient(context, {
    onConnected: async (link) => {
      await link.call(Game.Login, login("token"));
    },
  });
  await client.connect(server.url);
  server.answers = false;
  const lost = client.call(Game.Login, login("lost"));
  await Promise.all([
    assert.rejects(lost, { outcome: "closed", resultCode: ResultCode.Closed }),
    server.stop(),
  ]);
  const waiting = client.call(Game.Login, login("waiting"), { timeoutMs: 30_000 });
  server = await startServer(context, port);
  assert.equal((await waiting).role, 7n);
  assert.deepEqual(server.logins, ["token", "waiting"]);
});

test("of two servers one that is alive is found", async (context) => {
  const dead = await startServer(context);
  const alive = await startServer(context);
  const urls = [dead.url, alive.url];
  await dead.stop();
  const client = makeClient(context, { random: () => 0 });
  await client.connect(urls);
  assert.equal((await client.call(Game.Login, login("ann"))).role, 3n);
});

test("whatever breaks, no call is made twice, and each ends", async (context) => {
  const server = await startServer(context);
  const client = makeClient(context, { stableMs: 0 });
  await client.connect(server.url);
  const random = new Random(7);
  server.onLogin = () => {
    if (random.below(20) === 0) server.breakAll();
  };
  const outcomes = new Map<string, string>();
  const work = async (worker: number): Promise<void> => {
    for (let i = 0; i < 50; ++i) {
      const name = `call ${i} of ${worker}`;
      try {
        await client.call(Game.Login, login(name), { timeoutMs: 30_000 });
        outcomes.set(name, "done");
      } catch (error) {
        assert.ok(error instanceof RpcError, String(error));
        outcomes.set(name, error.outcome);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker)));

  assert.equal(outcomes.size, 400);
  const handled = new Set(server.logins);
  assert.equal(handled.size, server.logins.length, "one was handled twice");
  for (const [name, outcome] of outcomes) {
    assert.ok(outcome === "done" || outcome === "closed", outcome);
    if (outcome === "done") assert.ok(handled.has(name), name);
  }
  assert.ok(server.connections > 5);
  context.diagnostic(`${server.connections} connections, ${handled.size} of 400 calls handled`);
});

test("a server that accepts and says nothing is given up", async (context) => {
  const mute = createServer().listen(0, "127.0.0.1");
  await once(mute, "listening");
  const { port } = mute.address() as AddressInfo;
  let accepted = 0;
  const second = new Promise<void>((resolve) => {
    mute.on("connection", (socket) => {
      socket.on("error", () => undefined);
      if (++accepted === 2) resolve();
    });
  });
  const client = makeClient(context, { connectTimeoutMs: 20 });
  const connected = client.connect(`ws://127.0.0.1:${port}`);
  await second;
  client.close();
  await assert.rejects(connected, /the client was closed/);
  mute.close();
});

test("a server that talks nonsense is left", async (context) => {
  const server = await startServer(context);
  const client = makeClient(context, { reconnect: false });
  await client.connect(server.url);
  server.sendRaw("hello");
  await reached(client, "closed");
});

test("without a WebSocket the error says where to get one", async (context) => {
  if (ofBrowsers !== undefined) {
    context.skip("this Node.js has one");
    return;
  }
  await assert.rejects(new ZezeClient().connect("ws://game"), /npm's ws/);
});
