import type { Clock } from "zeze-client";

/** Time that passes when the test says so. */
export class ManualClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that have been neither run nor cancelled. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets time pass; timers run in their order, each at its time. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#now = due.at;
      this.#timers.delete(due);
      due.callback();
      await settled();
    }
    this.#now = end;
    await settled();
  }
}

/** When everything that waits for nothing but promises has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
