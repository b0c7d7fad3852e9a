/** What comes too early is kept up to these limits; the server sends the rest again on request. */
const FRAMES_MAX = 1024;
const BYTES_MAX = 1024 * 1024;

const FNV_PRIME = 16777619;
const FNV_BASIS = 2166136261;
const SAID = 1n << 32n;

/** Puts the reliable notifies of a login into their order, and drops those that it has seen. */
export class NotifyReceiver {
  readonly #frames = new Map<bigint, Uint8Array>();
  #bytes = 0;
  #next = 0n;
  #hash = FNV_BASIS;

  /** Everything below this index was handled. */
  get next(): bigint {
    return this.#next;
  }

  /** Of what was handled: servers compare it with theirs (zeze/messages/notify_hash.h). */
  get hash(): bigint {
    return SAID | BigInt(this.#hash >>> 0);
  }

  /** A later notify has come, but not the next one. */
  get hasGap(): boolean {
    return this.#frames.size > 0 && !this.#frames.has(this.#next);
  }

  /** A fresh login: the server counts from 0. */
  reset(): void {
    this.#frames.clear();
    this.#bytes = 0;
    this.#next = 0n;
    this.#hash = FNV_BASIS;
  }

  /** False: there is no room for it, it has to come again. */
  add(index: bigint, frame: Uint8Array): boolean {
    if (index < this.#next || this.#frames.has(index)) return true;
    const room = this.#frames.size < FRAMES_MAX && this.#bytes + frame.length <= BYTES_MAX;
    // The next one can be handled and forgotten.
    if (!room && index !== this.#next) return false;
    this.#bytes += frame.length;
    this.#frames.set(index, frame);
    return true;
  }

  /** The notify to handle now. It counts as handled after pop(). */
  front(): Uint8Array | undefined {
    return this.#frames.get(this.#next);
  }

  pop(): void {
    const frame = this.#frames.get(this.#next);
    if (frame === undefined) return;
    for (const byte of frame) this.#hash = Math.imul(this.#hash ^ byte, FNV_PRIME);
    this.#bytes -= frame.length;
    this.#frames.delete(this.#next);
    this.#next += 1n;
  }
}
