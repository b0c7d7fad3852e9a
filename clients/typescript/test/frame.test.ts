import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ByteReader,
  DecodeError,
  encodeFrame,
  type Frame,
  FRAME_HEADER_BYTES,
  FrameDecoder,
  FrameFamily,
  type FrameHead,
} from "zeze-client";

import { toHex } from "./support/hex.js";
import { Random } from "./support/random.js";

const head: FrameHead = {
  moduleId: 3,
  protocolId: -5,
  family: FrameFamily.Request,
  resultCode: -10n,
  sessionId: 2n ** 60n,
};

function frameOf(bytes: Uint8Array): Uint8Array {
  return encodeFrame(head, {
    encode: (out) => {
      out.writeBytes(bytes);
    },
  });
}

function collect(decoder: FrameDecoder, chunks: Iterable<Uint8Array>): string[] {
  const found: string[] = [];
  for (const chunk of chunks) {
    decoder.push(chunk, ({ payload, ...rest }: Frame) => {
      assert.deepEqual(rest, head);
      found.push(toHex(payload.readBytes()));
      return true;
    });
  }
  return found;
}

test("a stream is the same however it is cut", () => {
  const random = new Random(1);
  for (let round = 0; round < 200; ++round) {
    const payloads = Array.from({ length: 1 + random.below(5) }, () =>
      random.bytes(random.below(300)),
    );
    const stream = Buffer.concat(payloads.map(frameOf));
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < stream.length; ) {
      const end = at + 1 + random.below(random.below(2) === 0 ? 8 : 400);
      chunks.push(Uint8Array.from(stream.subarray(at, end)));
      at = end;
    }
    assert.deepEqual(collect(new FrameDecoder(1000), chunks), payloads.map(toHex));
  }
});

test("what was delivered stays as it is while more comes", () => {
  const decoder = new FrameDecoder(1000);
  const kept: ByteReader[] = [];
  const keep = ({ payload }: Frame): boolean => kept.push(payload) > 0;
  const first = frameOf(Uint8Array.of(1, 2, 3));
  decoder.push(first.subarray(0, 5), keep);
  decoder.push(first.subarray(5), keep);
  const second = frameOf(Uint8Array.of(9, 9, 9, 9, 9, 9));
  decoder.push(second.subarray(0, 20), keep);
  decoder.push(second.subarray(20), keep);
  assert.deepEqual(kept[0]?.readBytes(), Uint8Array.of(1, 2, 3));
});

test("a frame above the limit is refused as soon as it says so", () => {
  const refused = (bytes: number, chunks: number[]): void => {
    const header = new Uint8Array(FRAME_HEADER_BYTES);
    new DataView(header.buffer).setUint32(8, bytes, true);
    const decoder = new FrameDecoder(1000);
    let at = 0;
    assert.throws(() => {
      for (const size of chunks) {
        decoder.push(header.subarray(at, at + size), () => true);
        at += size;
      }
    }, DecodeError);
    assert.equal(at + (chunks.at(-1) ?? 0), FRAME_HEADER_BYTES);
  };
  refused(1001, [12]);
  refused(1001, [5, 7]);
  refused(2 ** 32 - 1, [11, 1]);
});

test("a frame that comes byte by byte costs no more than its size", () => {
  // Copied once for each byte it would be 2^40 bytes, and the test would not end.
  const bytes = frameOf(new Uint8Array(1 << 20));
  const decoder = new FrameDecoder(1 << 21);
  let frames = 0;
  for (let at = 0; at < bytes.length; ++at) {
    decoder.push(bytes.subarray(at, at + 1), () => ++frames > 0);
  }
  assert.equal(frames, 1);
});

test("nothing is delivered after the receiver has had enough", () => {
  const decoder = new FrameDecoder(1000);
  let frames = 0;
  const stream = Buffer.concat([frameOf(Uint8Array.of(1)), frameOf(Uint8Array.of(2))]);
  decoder.push(stream, () => {
    ++frames;
    return false;
  });
  assert.equal(frames, 1);
});

test("random bytes are refused or wait for more, and never anything else", () => {
  const random = new Random(2);
  for (let round = 0; round < 2000; ++round) {
    const bytes = random.bytes(random.below(60));
    if (bytes.length >= 12) bytes.set([random.below(40), 0, 0, 0], 8);
    try {
      new FrameDecoder(1000).push(bytes, ({ payload }) => payload.remaining >= 0);
    } catch (error) {
      assert.ok(error instanceof DecodeError, String(error));
    }
  }
});
