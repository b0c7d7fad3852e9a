// Lists, sets and maps of the schema.

import type { Codec, KeyCodec } from "./bean.js";
import type { ByteReader } from "./byte_reader.js";
import { ByteWriter } from "./byte_writer.js";
import { EncodeError } from "./errors.js";
import { TypeCode } from "./type_code.js";
import { ValueMap, ValueSet } from "./value_map.js";

/** Map, or ValueMap. */
interface MapLike<K, V> extends Iterable<[K, V]> {
  readonly size: number;
  set(key: K, value: V): unknown;
}

/** Set, or ValueSet. */
interface SetLike<T> extends Iterable<T> {
  readonly size: number;
  add(value: T): unknown;
}

function checkClass(value: unknown, type: abstract new (...args: never[]) => unknown): void {
  if (!(value instanceof type)) throw new EncodeError(`a ${type.name} is needed`);
}

function writeElements<T>(out: ByteWriter, size: number, values: Iterable<T>, element: Codec<T>) {
  out.writeListHeader(size, element.code);
  for (const value of values) element.write(out, value);
}

/** Reads the elements of a list one by one. */
function readElements<T>(
  input: ByteReader,
  code: TypeCode,
  element: Codec<T>,
  add: (value: T) => void,
): void {
  if (code !== TypeCode.List) input.failType("list or set", code);
  const { count, element: elementCode } = input.readListHeader();
  for (let i = 0; i < count; ++i) add(element.read(input, elementCode));
}

export function list<T>(element: Codec<T>): Codec<T[]> {
  return {
    code: TypeCode.List,
    zero: () => [],
    isZero: (value) => Array.isArray(value) && value.length === 0,
    write(out, value) {
      checkClass(value, Array);
      writeElements(out, value.length, value, element);
    },
    read(input, code) {
      const values: T[] = [];
      readElements(input, code, element, (value) => values.push(value));
      return values;
    },
  };
}

function setOf<T, S extends SetLike<T>>(
  type: abstract new (...args: never[]) => unknown,
  make: () => S,
  element: Codec<T>,
): Codec<S> {
  return {
    code: TypeCode.List,
    zero: make,
    isZero: (value) => value instanceof type && value.size === 0,
    write(out, value) {
      checkClass(value, type);
      writeElements(out, value.size, value, element);
    },
    read(input, code) {
      const values = make();
      readElements(input, code, element, (value) => values.add(value));
      return values;
    },
  };
}

/** Of elements that JavaScript compares by value: numbers, bigints, strings, booleans. */
export function set<T>(element: KeyCodec<T>): Codec<Set<T>> {
  return setOf<T, Set<T>>(Set, () => new Set(), element);
}

/** Of beankeys, binaries and vectors. */
export function valueSet<T>(element: KeyCodec<T>): Codec<ValueSet<T>> {
  return setOf<T, ValueSet<T>>(ValueSet, () => new ValueSet(element), element);
}

interface MapKind<K, V, M> {
  readonly type: abstract new (...args: never[]) => unknown;
  readonly make: () => M;
  readonly key: KeyCodec<K>;
  readonly value: Codec<V>;
  readonly sorted: boolean;
}

function mapOf<K, V, M extends MapLike<K, V>>(kind: MapKind<K, V, M>): Codec<M> {
  const { type, make, key, value: valueCodec, sorted } = kind;
  return {
    code: TypeCode.Map,
    zero: make,
    isZero: (value) => value instanceof type && value.size === 0,
    write(out, value) {
      checkClass(value, type);
      out.writeMapHeader(value.size, key.code, valueCodec.code);
      const pairs = sorted ? [...value].sort(([a], [b]) => key.compare(a, b)) : value;
      for (const [k, v] of pairs) {
        key.write(out, k);
        valueCodec.write(out, v);
      }
    },
    read(input, code) {
      if (code !== TypeCode.Map) input.failType("map", code);
      const values = make();
      const header = input.readMapHeader();
      for (let i = 0; i < header.count; ++i) {
        const k = key.read(input, header.key);
        values.set(k, valueCodec.read(input, header.value));
      }
      return values;
    },
  };
}

/** With keys that JavaScript compares by value: numbers, bigints, strings, booleans. */
export function map<K, V>(key: KeyCodec<K>, value: Codec<V>): Codec<Map<K, V>> {
  return mapOf<K, V, Map<K, V>>({ type: Map, make: () => new Map(), key, value, sorted: false });
}

/** With beankeys, binaries or vectors as keys. */
export function valueMap<K, V>(key: KeyCodec<K>, value: Codec<V>): Codec<ValueMap<K, V>> {
  const make = (): ValueMap<K, V> => new ValueMap(key);
  return mapOf<K, V, ValueMap<K, V>>({ type: ValueMap, make, key, value, sorted: false });
}

/** As map; sorted when it is written. */
export function sortedMap<K, V>(key: KeyCodec<K>, value: Codec<V>): Codec<Map<K, V>> {
  return mapOf<K, V, Map<K, V>>({ type: Map, make: () => new Map(), key, value, sorted: true });
}

/** As valueMap; sorted when it is written. */
export function sortedValueMap<K, V>(key: KeyCodec<K>, value: Codec<V>): Codec<ValueMap<K, V>> {
  const make = (): ValueMap<K, V> => new ValueMap(key);
  return mapOf<K, V, ValueMap<K, V>>({ type: ValueMap, make, key, value, sorted: true });
}

/** A row of a gtable: a map, sent inside a bean as its field 1. */
export function row<M>(cells: Codec<M>): Codec<M> {
  return {
    code: TypeCode.Bean,
    zero: () => cells.zero(),
    isZero: () => false,
    write(out, value) {
      out.nested(() => {
        if (!cells.isZero(value)) {
          out.writeTag(0, 1, cells.code);
          cells.write(out, value);
        }
        out.writeEnd();
      });
    },
    read(input, code) {
      if (code === TypeCode.Dynamic) input.readLong();
      else if (code !== TypeCode.Bean) input.failType("bean", code);
      return input.nested(() => {
        let value = cells.zero();
        let tag = input.readTag(0);
        if (tag.kind === "field" && tag.id === 1) {
          value = cells.read(input, tag.type);
          tag = input.readTag(1);
        }
        for (let lastId = 1; tag.kind !== "end"; tag = input.readTag(lastId)) {
          lastId = tag.kind === "field" ? tag.id : 0;
          if (tag.kind === "field") input.skip(tag.type);
        }
        return value;
      });
    },
  };
}
