// Generated classes against C++: tests/gen/wide.xml has every construct of the schema language, and
// bean_echo encodes its beans.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type Bean,
  type BeanClass,
  ByteReader,
  ByteWriter,
  DecodeError,
  decodeBean,
  encodeBean,
  EncodeError,
  type KeyCodec,
  type Protocol,
  type Rpc,
  TypeCode,
  types,
} from "zeze-client";

import * as Chat from "../generated/common/Chat.js";
import * as wide from "../generated/wide.js";
import * as Game from "../generated/wide/Game.js";
import * as Types from "../generated/wide/Types.js";
import * as Other from "../generated/wide/Types/Other.js";
import { echo, type Encoded, samples, skipWithoutEcho } from "./support/bean_echo.js";
import { fromHex, toHex } from "./support/hex.js";
import { Random } from "./support/random.js";

function sampleOf(type: BeanClass<Bean>): Uint8Array {
  const found = samples().find((sample) => sample.type === type);
  assert.ok(found);
  return found.bytes;
}

/** C++ reads what we write, and its own encoding of that is the sample. */
function assertSameAsSample(type: BeanClass<Bean>, bean: Bean): void {
  const [echoed] = echo([{ type, bytes: encodeBean(bean) }]);
  assert.equal(echoed, toHex(sampleOf(type)));
}

function scalars(): Types.BScalars {
  return new Types.BScalars({
    flag: true,
    b: -5,
    s: 300,
    i: -70000,
    l: 1n << 40n,
    f: 2.5,
    d: -0.1,
    bytes: Uint8Array.of(0, 255),
    text: "hï 中文 😀",
    amount: "-12.50",
    v2: { x: 1, y: -2 },
    v2i: { x: -1, y: 1 << 30 },
    v3: { x: 1, y: 2, z: 0.1 },
    v3i: { x: 1, y: -2, z: 3 },
    v4: { x: 1, y: 2, z: 3, w: 4 },
    q: { x: 0, y: 0, z: 0, w: 1 },
    place: new Types.BPlace({ map: 3, zone: "north" }),
    last: 9,
  });
}

const shared = (note: string): wide.BShared => new wide.BShared({ note });
const place = (map: number, zone: string): Types.BPlace => new Types.BPlace({ map, zone });

function containers(): Types.BContainers {
  const bean = new Types.BContainers({
    ints: Array.from({ length: 20 }, (_, i) => i * i * (i % 2 === 0 ? 1 : -1)),
    names: ["a", "", "c"],
    array: [scalars(), new Types.BScalars()],
    ids: new Set([5n, -6n, 2n ** 63n - 1n, -(2n ** 63n), 1n << 55n]),
    items: new Map([
      [7, shared("seven")],
      [-8, shared("")],
    ]),
    ranks: new Map([
      [1n << 40n, shared("last")],
      [3n, shared("third")],
      [-1n, shared("first")],
    ]),
    grid: new Map([
      [1, new Map([["k", shared("c")]])],
      [2, new Map()],
    ]),
    numbers: new Map([[1, new Map([[2n, 0.5]])]]),
    vectors: [
      { x: 1, y: 2, z: 3 },
      { x: 0, y: 0, z: 0 },
    ],
    blobs: new Map([["b", new TextEncoder().encode("bytes")]]),
    flags: [true, false],
  });
  bean.places.add(place(1, "x")).add(place(1, "y")).add(place(0, "")).add(place(1, "x"));
  bean.by_place.set(place(2, "y"), "two");
  return bean;
}

const cpp = { skip: skipWithoutEcho };

test("what C++ wrote is decoded and encoded to the same bytes", cpp, () => {
  const all = samples();
  assert.equal(all.length, 14);
  for (const { type, bytes } of all) {
    assert.equal(toHex(encodeBean(decodeBean(type, bytes))), toHex(bytes), type.fullName);
  }
});

test("scalars are encoded as C++ encodes them", cpp, () => {
  assert.equal(toHex(encodeBean(scalars())), toHex(sampleOf(Types.BScalars)));
  const decoded = decodeBean(Types.BScalars, sampleOf(Types.BScalars));
  assert.deepEqual(decoded, Object.assign(scalars(), { v3: { x: 1, y: 2, z: Math.fround(0.1) } }));
});

test("containers are understood by C++, and sorted maps are sorted", cpp, () => {
  assertSameAsSample(Types.BContainers, containers());
  const decoded = decodeBean(Types.BContainers, sampleOf(Types.BContainers));
  assert.equal(decoded.by_place.get(place(2, "y")), "two");
  assert.equal(decoded.places.size, 3);
  assert.ok(decoded.places.has(place(1, "y")));
  assert.deepEqual([...decoded.ranks.keys()], [-1n, 3n, 1n << 40n]);
  assert.equal(decoded.grid.get(1)?.get("k")?.note, "c");
  assert.equal(decoded.numbers.get(1)?.get(2n), 0.5);
});

test("sorted maps are written in the order of C++, whatever the order of insertion", cpp, () => {
  const keys = [1n << 40n, 3n, -1n, 0n, -(2n ** 63n)];
  const ranks = new Map(keys.map((key) => [key, shared(String(key))]));
  const bytes = encodeBean(new Types.BContainers({ ranks }));
  assert.deepEqual(echo([{ type: Types.BContainers, bytes }]), [toHex(bytes)]);

  const written = <K>(codec: KeyCodec<K>, sorted: readonly K[]): void => {
    const map = types.sortedValueMap(codec, types.bool);
    const value = map.zero();
    for (const key of [...sorted].reverse()) value.set(key, true);
    const out = new ByteWriter();
    map.write(out, value);
    assert.deepEqual([...map.read(new ByteReader(out.toBytes()), map.code).keys()], sorted);
  };
  written(types.string, ["", "a", "ab", "b", "\uffee", "\u{1f600}", "\u{1f601}"]); // As UTF-8.
  written(
    types.binary,
    ["", "00", "0000", "0001", "c8"].map((hex) => fromHex(hex)),
  );
  written(types.bool, [false, true]);
  written(types.vector2int, [
    { x: -1, y: 5 },
    { x: 0, y: -1 },
    { x: 0, y: 0 },
  ]);
  written(
    types.beanKey(() => Types.BPlace),
    [place(-1, "z"), place(1, "a"), place(1, "b")],
  );
});

test("numbers written as another type are converted as in C++", cpp, () => {
  // The large ones are rounded to another float if they are rounded to a double first.
  const large = 2n ** 60n + 2n ** 36n + 1n;
  const integers = [0n, 1n, -1n, large, -large, 2n ** 53n + 1n];
  const inputs: Encoded[] = [];
  const add = (id: number, code: TypeCode, write: (out: ByteWriter) => void): void => {
    const out = new ByteWriter();
    out.writeTag(0, id, code);
    write(out);
    out.writeEnd();
    inputs.push({ type: Types.BScalars, bytes: out.toBytes() });
  };
  for (let id = 1; id <= 16; ++id) {
    for (const value of integers) add(id, TypeCode.Integer, (out) => out.writeLong(value));
    for (const value of [0.1, -1.9, 1e10, -1e20, 1e300, Infinity, NaN]) {
      add(id, TypeCode.Float, (out) => out.writeFloat(value));
      add(id, TypeCode.Double, (out) => out.writeDouble(value));
    }
  }
  const ours = inputs.map(({ type, bytes }) => {
    try {
      return toHex(encodeBean(decodeBean(type, bytes)));
    } catch {
      return "error";
    }
  });
  assert.deepEqual(ours, echo(inputs));
});

test("recursion and dynamic beans are encoded as C++ encodes them", cpp, () => {
  const leaf = new Types.BNode({ value: 1 });
  const node = new Types.BNode({ value: 2, children: [leaf], named: new Map([["leaf", leaf]]) });
  node.partner = leaf;
  node.first.seconds.push(new Types.BSecond({ firsts: new Map([[1, new Types.BFirst()]]) }));
  assert.equal(toHex(encodeBean(node)), toHex(sampleOf(Types.BNode)));

  const holder = new Types.BNode({ partner: new Other.BSub({ up: shared("n"), nodes: [node] }) });
  const decoded = decodeBean(Types.BNode, encodeBean(holder));
  assert.ok(decoded.partner instanceof Other.BSub);
  assert.equal(decoded.partner.nodes[0]?.named.get("leaf")?.value, 1);
});

test("base beans and families of dynamic beans are encoded as C++ encodes them", cpp, () => {
  const further = new Types.BFurther({ more: 3n });
  further.base.own_value = "own";
  further.base.base.base_value = 5;
  const dynamics = new Types.BDynamics({
    any: further,
    list: [new Types.BBase({ base_value: 1 }), null],
    map: new Map([[1, shared("s")]]),
  });
  assert.equal(toHex(encodeBean(dynamics)), toHex(sampleOf(Types.BDynamics)));
});

test("unknown fields are kept where the schema says so", cpp, () => {
  const awkward = decodeBean(Types.BAwkward, sampleOf(Types.BAwkward));
  assert.deepEqual(
    awkward.unknownFields.map((field) => field.id),
    [20, 21],
  );
  assert.equal(awkward.cache, 0); // Transient.
  assert.equal(awkward.class, 1);
  assert.equal(awkward.base_, 5);
  assert.equal(awkward.color, Types.BAwkward_Color.Green);
  awkward.cache = 8;
  assert.equal(toHex(encodeBean(awkward)), toHex(sampleOf(Types.BAwkward)));
});

test("defaults hold for new beans, and absent means zero", () => {
  const fresh = new Types.BDefaults();
  assert.equal(fresh.flag, true);
  assert.equal(fresh.i, 60_000);
  assert.equal(fresh.l, -(2n ** 63n));
  assert.equal(fresh.text, 'a "b" \\ ??=');
  assert.deepEqual(fresh.v3, { x: 1, y: 2, z: 3 });
  assert.equal(fresh.constant, Types.BDefaults.cStart);
  assert.equal(fresh.other, Types.eFull);
  assert.deepEqual(decodeBean(Types.BDefaults, encodeBean(fresh)), fresh);

  const empty = decodeBean(Types.BDefaults, Uint8Array.of(0));
  assert.equal(empty.flag, false);
  assert.equal(empty.l, 0n);
  assert.equal(empty.text, "");
  assert.deepEqual(empty.v3, { x: 0, y: 0, z: 0 });
  assert.equal(empty.amount, "0");
});

test("constants and descriptions of protocols are those of the schema", () => {
  assert.equal(Types.eNotEnough, 3);
  assert.equal(Types.eTitle, 'hello "you"');
  assert.equal(Game.moduleId, 3);
  assert.equal(Game.Login.eNoAccount, 1);
  assert.equal(Game.Login.timeoutMs, 3000);
  assert.equal(Game.Say.protocolId, 5);
  assert.equal(Game.Say.typeId, (3n << 32n) | 5n);
  const login: Rpc<Game.BLogin, Game.BLoginResult> = Game.Login;
  const talk: Protocol<Chat.BTalk> = Chat.Talk;
  assert.equal(login.kind, "rpc");
  assert.equal(talk.kind, "protocol");
});

test("values that do not fit their types are refused, naming the field", () => {
  const refused = (change: (bean: Types.BContainers) => void, message: RegExp): void => {
    const bean = containers();
    change(bean);
    assert.throws(() => encodeBean(bean), { name: "EncodeError", message });
  };
  refused((bean) => bean.ints.push(1.5), /^ints: 1.5 is no int/);
  refused((bean) => bean.ints.push(2 ** 31), /^ints: 2147483648 is no int/);
  refused((bean) => bean.ids.add(2n ** 63n), /^ids: 9223372036854775808 does not fit/);
  refused((bean) => {
    (bean.array[0] ?? new Types.BScalars()).b = 128;
  }, /^array.b: 128 is no byte \(a whole number from -128 to 127\)/);
  refused((bean) => {
    (bean.array[0] ?? new Types.BScalars()).amount = "1,5";
  }, /^array.amount: the text "1,5" is no decimal/);
  refused((bean) => {
    bean.items.set(1, new Types.BEmpty() as unknown as wide.BShared);
  }, /^items: a BEmpty is no wide.BShared/);
  const dynamic = new Types.BNode({ partner: new Types.BEmpty() as unknown as Types.BNode });
  assert.throws(() => encodeBean(dynamic), /partner: a BEmpty is none of wide.Types.BNode/);
  const missing = new Types.BScalars({ text: undefined as unknown as string });
  assert.throws(() => encodeBean(missing), EncodeError);
});

test("every cut bean is refused", cpp, () => {
  for (const { type, bytes } of samples()) {
    for (let length = 0; length < bytes.length; ++length) {
      assert.throws(() => decodeBean(type, bytes.subarray(0, length)), DecodeError);
    }
    assert.throws(() => decodeBean(type, Uint8Array.of(...bytes, 0)), DecodeError);
  }
});

function mutate(bytes: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  const result = [...bytes];
  for (let changes = 1 + random.below(3); changes > 0; --changes) {
    const at = random.below(result.length + 1);
    switch (random.below(5)) {
      case 0:
        result.splice(at, 1, random.below(256));
        break;
      case 1:
        result.splice(at, 1, (result[at] ?? 0) ^ (1 << random.below(8)));
        break;
      case 2:
        result.splice(at, 1 + random.below(4));
        break;
      case 3:
        result.splice(at, 0, ...random.bytes(1 + random.below(3)));
        break;
      default: {
        const from = random.below(other.length);
        result.splice(at, random.below(8), ...other.slice(from, from + random.below(16)));
      }
    }
  }
  return Uint8Array.from(result);
}

/** Values that cannot survive in JavaScript: payloads of NaN, and text that is no text. */
function isLossy(value: unknown): boolean {
  if (typeof value === "number") return Number.isNaN(value);
  if (typeof value === "string") return value.includes("\ufffd");
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return false;
  const parts = Symbol.iterator in value ? [...(value as Iterable<unknown>)] : Object.values(value);
  return parts.some(isLossy);
}

test("changed bytes mean the same to C++ and TypeScript", cpp, (context) => {
  const random = new Random(Number(process.env["ZEZE_TEST_SEED"] ?? 20240607));
  context.diagnostic(`ZEZE_TEST_SEED=${random.seed}`);
  const originals = samples().filter(({ bytes }) => bytes.length > 1);
  const inputs: Encoded[] = [];
  for (let i = 0; i < 20_000; ++i) {
    const { type, bytes } = originals[i % originals.length] as Encoded;
    const other = (originals[random.below(originals.length)] as Encoded).bytes;
    inputs.push({ type, bytes: mutate(bytes, other, random) });
  }
  const theirs = echo(inputs);
  const accepted: { ours: Encoded; theirs: string; input: Encoded }[] = [];
  inputs.forEach((input, i) => {
    const where = `${input.type.fullName} ${toHex(input.bytes)}`;
    let bean: Bean;
    try {
      bean = decodeBean(input.type, input.bytes);
    } catch (error) {
      assert.ok(error instanceof DecodeError, where);
      assert.equal(theirs[i], "error", `${where}: ${error.message}`);
      return;
    }
    assert.notEqual(theirs[i], "error", where);
    if (isLossy(bean)) return;
    const ours = { type: input.type, bytes: encodeBean(bean) };
    accepted.push({ ours, theirs: theirs[i] ?? "", input });
  });
  // By way of C++, as the order of entries in a map is each side's own.
  const ours = echo(accepted.map((each) => each.ours));
  accepted.forEach((each, i) => {
    assert.equal(ours[i], each.theirs, `${each.input.type.fullName} ${toHex(each.input.bytes)}`);
  });
  context.diagnostic(`${inputs.length} inputs, ${accepted.length} accepted by both`);
  assert.ok(accepted.length > inputs.length / 20);
});
