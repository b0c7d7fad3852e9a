// Containers whose keys are compared by value, as the server compares them: two beankeys with equal
// fields are one key, which they are not in a Map.

import type { KeyCodec } from "./bean.js";
import { ByteWriter } from "./byte_writer.js";

/** A text that equal keys, and only those, have: their encoding. */
function textOf<K>(codec: KeyCodec<K>, key: K): string {
  const out = new ByteWriter();
  codec.write(out, key);
  let text = "";
  for (const byte of out.toBytes()) text += String.fromCharCode(byte);
  return text;
}

/**
 * A map by beankeys, binaries or vectors, which must not change while they are keys.
 *
 *     bean.byPlace.set(new BPlace({ map: 1, zone: "north" }), "camp");
 *     bean.byPlace.get(new BPlace({ map: 1, zone: "north" })); // "camp"
 */
export class ValueMap<K, V> implements Iterable<[K, V]> {
  readonly #codec: KeyCodec<K>;
  readonly #pairs = new Map<string, [K, V]>();

  constructor(codec: KeyCodec<K>) {
    this.#codec = codec;
  }

  get size(): number {
    return this.#pairs.size;
  }

  get(key: K): V | undefined {
    return this.#pairs.get(textOf(this.#codec, key))?.[1];
  }

  has(key: K): boolean {
    return this.#pairs.has(textOf(this.#codec, key));
  }

  set(key: K, value: V): this {
    this.#pairs.set(textOf(this.#codec, key), [key, value]);
    return this;
  }

  delete(key: K): boolean {
    return this.#pairs.delete(textOf(this.#codec, key));
  }

  clear(): void {
    this.#pairs.clear();
  }

  *keys(): IterableIterator<K> {
    for (const [key] of this.#pairs.values()) yield key;
  }

  *values(): IterableIterator<V> {
    for (const [, value] of this.#pairs.values()) yield value;
  }

  *[Symbol.iterator](): IterableIterator<[K, V]> {
    for (const [key, value] of this.#pairs.values()) yield [key, value];
  }
}

/** A set of beankeys, binaries or vectors, which must not change while they are in it. */
export class ValueSet<T> implements Iterable<T> {
  readonly #map: ValueMap<T, true>;

  constructor(codec: KeyCodec<T>) {
    this.#map = new ValueMap(codec);
  }

  get size(): number {
    return this.#map.size;
  }

  has(value: T): boolean {
    return this.#map.has(value);
  }

  add(value: T): this {
    if (!this.#map.has(value)) this.#map.set(value, true);
    return this;
  }

  delete(value: T): boolean {
    return this.#map.delete(value);
  }

  clear(): void {
    this.#map.clear();
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#map.keys();
  }
}
