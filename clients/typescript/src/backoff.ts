/**
 * How long to wait before the next attempt: exponential with full jitter, so that clients that lost
 * their server together do not come back together.
 */
export class Backoff {
  #attempts = 0;

  constructor(
    readonly minMs: number,
    readonly maxMs: number,
    readonly random: () => number,
  ) {}

  /** Since the last reset. */
  get attempts(): number {
    return this.#attempts;
  }

  reset(): void {
    this.#attempts = 0;
  }

  /** `hintMs` is what the server or the application wishes, if anything. */
  next(hintMs: number | undefined): number {
    const ceilingMs = Math.min(this.maxMs, this.minMs * 2 ** Math.min(this.#attempts, 30));
    ++this.#attempts;
    if (hintMs === undefined || !Number.isFinite(hintMs)) return this.random() * ceilingMs;
    return Math.max(0, hintMs) + this.random() * this.minMs;
  }
}
