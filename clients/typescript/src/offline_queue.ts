import type { Connection } from "./connection.js";
import type { PendingCall } from "./pending_call.js";
import type { Clock } from "./platform.js";
import { ResultCode } from "./protocol.js";

interface Entry {
  readonly bytes: number;
  send(connection: Connection): void;
  fail(problem: string): void;
}

/** What waits for a connection, in order; bounded in number and bytes. */
export class OfflineQueue {
  readonly #entries = new Set<Entry>();
  #bytes = 0;

  constructor(
    readonly messagesMax: number,
    readonly bytesMax: number,
  ) {}

  /** False if it is full. The call leaves by itself when its time is up. */
  addCall(call: PendingCall): boolean {
    const entry: Entry = {
      bytes: call.frame.length,
      send: (connection) => {
        call.onEnd = () => undefined;
        connection.submit(call);
      },
      fail: (problem) => {
        call.fail("notSent", ResultCode.Closed, problem);
      },
    };
    if (!this.#add(entry)) return false;
    call.onEnd = () => {
      this.#remove(entry);
    };
    return true;
  }

  /** False if it is full. The frame is dropped after `timeoutMs`. */
  addMessage(frame: Uint8Array, timeoutMs: number, clock: Clock): boolean {
    let cancelTimer = (): void => undefined;
    const entry: Entry = {
      bytes: frame.length,
      send: (connection) => {
        cancelTimer();
        connection.sendFrame(frame);
      },
      fail: () => {
        cancelTimer();
      },
    };
    if (!this.#add(entry)) return false;
    cancelTimer = clock.after(timeoutMs, () => {
      this.#remove(entry);
    });
    return true;
  }

  /** Sends everything, in order, while the connection lasts; the rest waits for the next one. */
  drainTo(connection: Connection): void {
    for (const entry of this.#entries) {
      if (!connection.isOpen) return;
      this.#remove(entry);
      entry.send(connection);
    }
  }

  fail(problem: string): void {
    for (const entry of this.#entries) {
      this.#remove(entry);
      entry.fail(problem);
    }
  }

  #add(entry: Entry): boolean {
    if (this.#entries.size >= this.messagesMax) return false;
    if (this.#bytes + entry.bytes > this.bytesMax) return false;
    this.#entries.add(entry);
    this.#bytes += entry.bytes;
    return true;
  }

  #remove(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#bytes -= entry.bytes;
  }
}
