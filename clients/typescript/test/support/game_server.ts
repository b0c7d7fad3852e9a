import { once } from "node:events";
import type { AddressInfo } from "node:net";

import { type WebSocket, WebSocketServer } from "ws";
import {
  type Bean,
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameFamily,
  type Protocol,
  ResultCode,
} from "zeze-client";

import * as Game from "../../generated/wide/Game.js";
import { oneWay } from "./fake_socket.js";

/** A server that logs people in, on real WebSockets. */
export class GameServer {
  readonly #server: WebSocketServer;
  /** The accounts of all logins, in the order in which they were handled. */
  readonly logins: string[] = [];
  readonly said: string[] = [];
  connections = 0;
  /** Whether it still answers. */
  answers = true;
  /** Called when a login has been handled, before it is answered. */
  onLogin: () => void = () => undefined;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    server.on("connection", (socket) => {
      ++this.connections;
      this.#serve(socket);
    });
  }

  /** On a free port, or on the one given. */
  static async start(port = 0): Promise<GameServer> {
    // As small as the limit of the peer's servers.
    const server = new WebSocketServer({ host: "127.0.0.1", port, maxPayload: 64 * 1024 });
    const game = new GameServer(server);
    await once(server, "listening");
    return game;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/ws`;
  }

  tellAll<A extends Bean>(protocol: Protocol<A>, argument: A): void {
    for (const socket of this.#server.clients) socket.send(oneWay(protocol, argument));
  }

  sendRaw(data: Uint8Array | string): void {
    for (const socket of this.#server.clients) socket.send(data);
  }

  /** As if the machine had died. */
  breakAll(): void {
    for (const socket of this.#server.clients) socket.terminate();
  }

  /** Can be repeated. */
  stop(): Promise<void> {
    this.breakAll();
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }

  #serve(socket: WebSocket): void {
    const decoder = new FrameDecoder(1 << 24);
    socket.on("error", () => undefined); // The close that follows says enough.
    socket.on("message", (data) => {
      decoder.push(data as Buffer, (frame) => {
        this.#handle(socket, frame);
        return true;
      });
    });
  }

  #handle(socket: WebSocket, frame: Frame): void {
    const argument = new Game.BLogin();
    if (frame.family === FrameFamily.OneWay) {
      argument.decode(frame.payload);
      this.said.push(argument.account);
      return;
    }
    if (!this.answers || frame.family !== FrameFamily.Request) return;
    const isLogin = frame.protocolId === Game.Login.protocolId;
    const result = new Game.BLoginResult();
    if (isLogin) {
      argument.decode(frame.payload);
      this.logins.push(argument.account);
      this.onLogin();
      result.role = BigInt(argument.account.length);
    }
    const resultCode = isLogin || frame.moduleId === 0 ? 0n : ResultCode.NotImplement;
    const { moduleId, protocolId, sessionId } = frame;
    const head = { moduleId, protocolId, family: FrameFamily.Response, resultCode, sessionId };
    socket.send(encodeFrame(head, result));
  }
}
