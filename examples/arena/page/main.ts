// The page of the arena: a person among the bots.

import {
  authenticateBy,
  BReportError,
  GameOnline,
  ReportError,
  RpcError,
  tokenFromHex,
  ZezeClient,
  type Bean,
  type Rpc,
} from "zeze-client";
import * as Board from "./gen/arena/arena/Board.js";
import * as Buff from "./gen/arena/arena/Buff.js";
import * as Mail from "./gen/arena/arena/Mail.js";
import * as Map from "./gen/arena/arena/Map.js";
import * as Player from "./gen/arena/arena/Player.js";
import * as World from "./gen/arena/arena/World.js";

const MAP_COUNT = 8;
const MAP_SIZE = 100;
const MAILS_SHOWN = 8;
const GOOD_NAMES = ["", "swords", "shields", "potions", "scrolls"];

interface Where {
  readonly gateways: readonly string[];
}

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

function log(text: string): void {
  const line = document.createElement("li");
  line.textContent = text;
  const list = element("log");
  list.prepend(line);
  while (list.childElementCount > 100) list.lastElementChild?.remove();
}

class Game {
  readonly #account: string;
  readonly #client: ZezeClient;
  #role = 0n;
  #request = 0n;
  #sequence = 0n;
  #map = 1 + Math.floor(Math.random() * MAP_COUNT);
  #seen: readonly Map.BSeen[] = [];
  #busy = false;

  constructor(account: string) {
    this.#account = account;
    const authenticate = authenticateBy(async () => {
      const answer = await fetch(`token?account=${encodeURIComponent(account)}`);
      if (!answer.ok) throw new Error(`no token: ${await answer.text()}`);
      return tokenFromHex(await answer.text());
    });
    this.#client = new ZezeClient({
      onConnected: async (link) => {
        await authenticate(link);
        const entered = await link.call(Player.Enter, Player.Enter.newArgument());
        this.#role = entered.role;
        this.#request = entered.lastRequest;
        this.#showProperty(entered.gold, entered.score);
        this.#showGoods(entered.goods);
        await link.call(GameOnline.Login, new GameOnline.BLogin({ RoleId: entered.role }));
        const map = await link.call(World.EnterMap, new World.BEnterMap({ map: this.#map }));
        element("server").textContent = `${map.server}`;
        this.#showBuff(await link.call(Buff.Look, Buff.Look.newArgument()));
        this.#showMails(await link.call(Mail.List, new Mail.BList({ count: MAILS_SHOWN })));
      },
      onError: (error) => {
        log(`${error}`);
      },
    });
    this.#client.onState((state) => {
      element("state").textContent = state;
      element("state").classList.toggle("ready", state === "ready");
    });
    this.#client.onAttemptFailed(({ url, problem }) => {
      log(`${url}: ${problem}`);
    });
    this.#client.onKicked(() => {
      log(`${account} plays in another window now.`);
      element("kicked").hidden = false;
    });
    this.#client.on(ReportError, (report) => {
      // The server that ran the map is gone: another one takes over.
      if (report.from === BReportError.FromDynamicModule) void this.changeMap(this.#map);
    });
    this.#client.on(Map.SView, (view) => {
      this.#seen = [...view.players];
      this.#draw();
    });
    this.#client.on(Map.SStruck, (struck) => {
      log(struck.lost ? "You were struck and lost." : "You were struck and won.");
      this.#showProperty(struck.gold, struck.score);
    });
    this.#client.on(Buff.SBuff, (buff) => {
      log("Your strength has worn off.");
      this.#showBuff(buff);
    });
    this.#client.on(Mail.SNewMail, () => void this.#refreshMails());
  }

  async start(): Promise<void> {
    const where = (await (await fetch("where")).json()) as Where;
    await this.#client.connect(where.gateways);
    setInterval(() => void this.#showBoard(), 1000);
    void this.#showBoard();
  }

  /** Here again, instead of in the other window. */
  playHere(): void {
    element("kicked").hidden = true;
    this.#client.reconnect();
  }

  move(x: number, y: number): void {
    this.#sequence += 1n;
    this.#client.send(Map.Move, new Map.BMove({ sequence: this.#sequence, x, y }));
  }

  async fight(): Promise<void> {
    await this.#once(async (request) => {
      const result = await this.#repeat(Map.Attack, new Map.BAttack({ request, target: 0n }));
      log(result.won ? "You fought and won." : "You fought and lost.");
      this.#showProperty(result.gold, result.score);
    });
  }

  async buy(): Promise<void> {
    const seller = this.#seen.find((seen) => seen.role !== this.#role);
    if (seller === undefined) {
      log("Nobody is near who could sell anything.");
      return;
    }
    await this.#once(async (request) => {
      const good = 1 + Math.floor(Math.random() * (GOOD_NAMES.length - 1));
      const trade = new Player.BTrade({ request, seller: seller.role, good, price: 5n });
      await this.#repeat(Player.Trade, trade);
      await this.#refreshProperty();
      log(`You bought ${GOOD_NAMES[good]} from ${seller.account}.`);
    });
  }

  async drink(): Promise<void> {
    await this.#once(async (request) => {
      this.#showBuff(await this.#repeat(Buff.Drink, new Buff.BDrink({ request })));
      await this.#refreshProperty();
      log("You drank a potion and are stronger.");
    });
  }

  async claim(id: bigint): Promise<void> {
    try {
      await this.#repeat(Mail.Claim, new Mail.BMailId({ id }));
      log("You took what came with a mail.");
      await this.#refreshProperty();
    } catch (error) {
      log(`It did not work: ${error instanceof Error ? error.message : String(error)}`);
    }
    await this.#refreshMails();
  }

  async delete(id: bigint): Promise<void> {
    try {
      await this.#repeat(Mail.Delete, new Mail.BMailId({ id }));
    } catch (error) {
      log(`It did not work: ${error instanceof Error ? error.message : String(error)}`);
    }
    await this.#refreshMails();
  }

  async changeMap(map: number): Promise<void> {
    this.#map = map;
    const entered = await this.#client.call(World.EnterMap, new World.BEnterMap({ map }));
    element("server").textContent = `${entered.server}`;
    log(`You are on map ${map}.`);
  }

  /** One request about property at a time; each has a number of its own. */
  async #once(action: (request: bigint) => Promise<void>): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    try {
      this.#request += 1n;
      await action(this.#request);
    } catch (error) {
      log(`It did not work: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.#busy = false;
    }
  }

  /** Until it is answered: the server does a request with the same number once. */
  async #repeat<A extends Bean, R extends Bean>(rpc: Rpc<A, R>, argument: A): Promise<R> {
    for (let attempt = 1; ; ++attempt) {
      try {
        return await this.#client.call(rpc, argument);
      } catch (error) {
        // A code of a module: the rules of the game say no. Others are of servers that come and go.
        const rules = !(error instanceof RpcError) || error.moduleId !== 0;
        if (rules || attempt === 10) throw error;
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  }

  async #refreshProperty(): Promise<void> {
    const now = await this.#client.call(Player.Enter, Player.Enter.newArgument());
    this.#showProperty(now.gold, now.score);
    this.#showGoods(now.goods);
  }

  async #refreshMails(): Promise<void> {
    try {
      this.#showMails(await this.#client.call(Mail.List, new Mail.BList({ count: MAILS_SHOWN })));
    } catch {
      // Shown again with the next one.
    }
  }

  #showBuff(buff: Buff.BShownBuff): void {
    element("buff").textContent = buff.power === 0 ? "none" : `+${buff.power} %`;
  }

  #showMails(list: Mail.BListResult): void {
    element("mails").replaceChildren(
      ...[...list.mails].map(({ id, mail }) => {
        const line = document.createElement("li");
        line.textContent = mail.text;
        const button = document.createElement("button");
        const waiting = mail.gold > 0n && !mail.claimed;
        button.textContent = waiting ? `Take ${mail.gold} gold` : "Delete";
        button.addEventListener("click", () => void (waiting ? this.claim(id) : this.delete(id)));
        line.append(" ", button);
        return line;
      }),
    );
  }

  #showProperty(gold: bigint, score: bigint): void {
    element("gold").textContent = `${gold}`;
    element("score").textContent = `${score}`;
  }

  #showGoods(goods: Iterable<[number, number]>): void {
    const texts = [...goods].map(([good, count]) => `${count} ${GOOD_NAMES[good] ?? "things"}`);
    element("goods").textContent = texts.join(", ");
  }

  async #showBoard(): Promise<void> {
    if (this.#client.state !== "ready") return;
    try {
      const top = await this.#client.call(Board.Top, new Board.BTop({ count: 10 }));
      element("board").replaceChildren(
        ...[...top.entries].map((entry) => {
          const line = document.createElement("li");
          line.textContent = `${entry.account}: ${entry.score}`;
          line.classList.toggle("me", entry.role === this.#role);
          return line;
        }),
      );
    } catch {
      // Shown again in a second.
    }
  }

  #draw(): void {
    const canvas = element<HTMLCanvasElement>("map");
    const context = canvas.getContext("2d");
    if (context === null) return;
    const scale = canvas.width / MAP_SIZE;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.font = "12px system-ui";
    for (const player of this.#seen) {
      const me = player.role === this.#role;
      context.fillStyle = me ? "#ffd34d" : "#7fd3a5";
      context.beginPath();
      context.arc((player.x + 0.5) * scale, (player.y + 0.5) * scale, me ? 7 : 5, 0, 2 * Math.PI);
      context.fill();
      if (me) context.fillText(this.#account, player.x * scale + 12, player.y * scale + 4);
    }
  }
}

function play(account: string): void {
  const game = new Game(account);
  element("join").hidden = true;
  element("game").hidden = false;
  const maps = element<HTMLSelectElement>("maps");
  for (let map = 1; map <= MAP_COUNT; ++map) maps.add(new Option(`${map}`, `${map}`));
  maps.addEventListener("change", () => {
    game.changeMap(Number(maps.value)).catch((error: unknown) => {
      log(`You cannot go there: ${error}`);
    });
  });
  element("play-here").addEventListener("click", () => {
    game.playHere();
  });
  element("fight").addEventListener("click", () => void game.fight());
  element("trade").addEventListener("click", () => void game.buy());
  element("drink").addEventListener("click", () => void game.drink());
  element<HTMLCanvasElement>("map").addEventListener("click", (event) => {
    const canvas = event.currentTarget as HTMLCanvasElement;
    const scale = MAP_SIZE / canvas.clientWidth;
    game.move(Math.floor(event.offsetX * scale), Math.floor(event.offsetY * scale));
  });
  game.start().catch((error: unknown) => {
    log(`${error}`);
  });
}

element<HTMLFormElement>("join").addEventListener("submit", (event) => {
  event.preventDefault();
  play(element<HTMLInputElement>("name").value);
});
