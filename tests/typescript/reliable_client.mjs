// Roles that are logged in through the TypeScript client:
//   node reliable_client.mjs PACKAGE FIRST_ROLE LAST_ROLE URL...
// Says "role R fresh", "role R resumed", "role R kicked CODE WHY" and "role R N" for each notify.
// SIGUSR2 cuts the connections.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packageFolder, first, last, ...urls] = process.argv.slice(2);
const zeze = await import(pathToFileURL(`${packageFolder}/dist/index.js`).href);
const { WebSocket } = createRequire(`${packageFolder}/package.json`)("ws");

const sockets = new Set();
class Cuttable extends WebSocket {
  constructor(url) {
    super(url);
    sockets.add(this);
    this.on("close", () => sockets.delete(this));
  }
}
process.on("SIGUSR2", () => {
  for (const socket of sockets) socket.terminate();
});

for (let role = Number(first); role <= Number(last); ++role) {
  const say = (what) => console.log(`role ${role} ${what}`);
  const client = new zeze.ZezeClient({
    webSocket: Cuttable,
    onConnected: zeze.authenticateBy(() => zeze.tokenOfAccount(`account ${role}`)),
    login: { roleId: BigInt(role) },
    connectWithinMs: 60_000,
    backoffMaxMs: 1000,
    onError: (error) => console.error(`role ${role}: ${error}`),
  });
  client.onReliable(zeze.ReportError, ({ code }) => say(code));
  client.onLogin(say);
  client.onKicked((kick) => say(`kicked ${kick.code} ${kick.desc}`));
  client.connect(urls).catch((error) => {
    console.error(`role ${role}: ${error}`);
    process.exit(1);
  });
}
