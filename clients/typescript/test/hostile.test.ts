// Bytes made to cost more than they are worth.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ByteReader,
  ByteWriter,
  DecodeError,
  decodeBean,
  encodeBean,
  TypeCode,
  types,
} from "zeze-client";

import * as Types from "../generated/wide/Types.js";
import { fromHex } from "./support/hex.js";

function refused(bytes: Uint8Array, message: RegExp): void {
  assert.throws(() => decodeBean(Types.BContainers, bytes), { name: "DecodeError", message });
}

test("counts and lengths beyond the bytes are refused before memory is given", () => {
  refused(fromHex("14f0f0fffffff0"), /elements of at least 1 bytes are claimed/);
  refused(fromHex("24f3f0ffffffff"), /elements of at least 1 bytes are claimed/);
  refused(fromHex("6506f0ffffffff"), /4294967295 elements of at least 2 bytes are claimed/);
  refused(fromHex("2413f0ffffffff"), /4294967295 bytes are needed/);
});

test("what peers could not read is not written", () => {
  const nest = (levels: number): Types.BNode => {
    let node = new Types.BNode();
    for (let i = 1; i < levels; ++i) {
      const outer = new Types.BNode();
      outer.children.push(node);
      node = outer;
    }
    return node;
  };
  const deepest = nest(127); // The innermost one has a bean, too.
  assert.deepEqual(decodeBean(Types.BNode, encodeBean(deepest)), deepest);
  assert.throws(() => encodeBean(nest(128)), {
    name: "EncodeError",
    message: /nested deeper than 128/,
  });
});

test("nesting has a bound, known and unknown", () => {
  const known = new ByteWriter();
  for (let i = 0; i < 100_000; ++i) {
    known.writeTag(0, 2, TypeCode.List); // children
    known.writeListHeader(1, TypeCode.Bean);
  }
  assert.throws(() => decodeBean(Types.BNode, known.toBytes()), /nested deeper than 128/);
  const unknown = (type: TypeCode, begin: (out: ByteWriter) => void): void => {
    const out = new ByteWriter();
    for (let i = 0; i < 100_000; ++i) begin(out);
    const input = new ByteReader(out.toBytes());
    assert.throws(() => {
      input.skip(type);
    }, /nested deeper than 128/);
  };
  unknown(TypeCode.Bean, (out) => out.writeTag(0, 1, TypeCode.Bean));
  unknown(TypeCode.List, (out) => {
    out.writeListHeader(1, TypeCode.List);
  });
  unknown(TypeCode.Dynamic, (out) => {
    out.writeInt(1);
    out.writeTag(0, 1, TypeCode.Dynamic);
  });
});

test("a long text that is no number is refused quickly", () => {
  const out = new ByteWriter();
  out.writeString(`${"1".repeat(1 << 20)}x`);
  const input = new ByteReader(out.toBytes());
  assert.throws(() => types.decimal.read(input, TypeCode.Bytes), DecodeError);
});

test("tags that are none are refused", () => {
  for (const hex of ["02", "0f", "1d00", "1e00", "1f00", "f08ff1", "f0f0ffffffff", ""]) {
    assert.throws(() => decodeBean(Types.BEmpty, fromHex(hex)), DecodeError, hex);
  }
});

test("a value of another type is refused", () => {
  assert.throws(
    () => decodeBean(Types.BScalars, fromHex("930500")),
    /a value of type BYTES was found where|bytes are needed/,
  );
  assert.throws(() => decodeBean(Types.BScalars, fromHex("900500")), /INTEGER .* string/);
  assert.throws(() => decodeBean(Types.BNode, fromHex("47051000")), /type id 5 is not among/);
});
