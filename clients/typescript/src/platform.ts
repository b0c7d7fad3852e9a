// What browsers and Node.js both have, typed without the libraries of either, so that the package
// depends on none of them.

interface Utf8Decoder {
  decode(bytes: Uint8Array): string;
}

interface Platform {
  readonly TextDecoder: new (
    encoding: string,
    options: { fatal: boolean; ignoreBOM: boolean },
  ) => Utf8Decoder;
  readonly WebSocket?: WebSocketConstructor;
  readonly console: { error(...values: unknown[]): void };
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export const platform = globalThis as unknown as Platform;

/** The part of a WebSocket that the client uses: a browser's, or that of the npm package `ws`. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  send(data: Uint8Array): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(
    type: "close",
    listener: (event: { code: number; reason: string }) => void,
  ): void;
  addEventListener(type: "error", listener: (event: { message?: string }) => void): void;
}

export type WebSocketConstructor = new (url: string) => WebSocketLike;

/** Time, as the client sees it. Tests put their own in its place. */
export interface Clock {
  /** Milliseconds from some start; never goes back. */
  now(): number;
  /** Calls back once, after so many milliseconds; the result cancels it. */
  after(ms: number, callback: () => void): () => void;
}

declare const performance: { now(): number };

export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = platform.setTimeout(callback, ms);
    return () => {
      platform.clearTimeout(timer);
    };
  },
};
