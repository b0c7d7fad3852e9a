// Frames: 12 bytes of header, then a body. The connection is a stream of them; where the messages
// of the WebSocket begin and end means nothing.

import type { Bean } from "./bean.js";
import { ByteReader } from "./byte_reader.js";
import { ByteWriter } from "./byte_writer.js";
import { DecodeError } from "./errors.js";

export const FRAME_HEADER_BYTES = 12;

/** Sent as the low five bits of a body's first byte: never renumbered. */
export const FrameFamily = { Response: 0, Request: 1, OneWay: 2 } as const;

export type FrameFamily = (typeof FrameFamily)[keyof typeof FrameFamily];

const FAMILY_MASK = 0x1f;
const HAS_RESULT_CODE = 0x20;

/** What a frame says besides its argument or result. */
export interface FrameHead {
  readonly moduleId: number;
  readonly protocolId: number;
  readonly family: FrameFamily;
  readonly resultCode: bigint;
  /** Chosen by whoever asks, returned with the answer; 0 in one-way messages. */
  readonly sessionId: bigint;
}

export interface Frame extends FrameHead {
  /** The argument or result. Its bytes may be gone after the call that delivers the frame. */
  readonly payload: ByteReader;
}

export function encodeFrame(head: FrameHead, payload: Pick<Bean, "encode">): Uint8Array {
  const out = new ByteWriter();
  out.writeInt4(head.moduleId);
  out.writeInt4(head.protocolId);
  const body = out.beginSize4();
  const hasCode = head.resultCode !== 0n;
  out.writeUint(head.family | (hasCode ? HAS_RESULT_CODE : 0));
  if (hasCode) out.writeLong(head.resultCode);
  if (head.family !== FrameFamily.OneWay) out.writeLong(head.sessionId);
  payload.encode(out);
  out.endSize4(body);
  return out.toBytes();
}

function parseFrame(moduleId: number, protocolId: number, body: Uint8Array): Frame {
  const payload = new ByteReader(body);
  const header = payload.readUint();
  const family = header & FAMILY_MASK;
  if (family > FrameFamily.OneWay) {
    throw new DecodeError(`frame of module ${moduleId}: there is no family ${family}`);
  }
  const resultCode = (header & HAS_RESULT_CODE) !== 0 ? payload.readLong() : 0n;
  const sessionId = family === FrameFamily.OneWay ? 0n : payload.readLong();
  return { moduleId, protocolId, family: family as FrameFamily, resultCode, sessionId, payload };
}

function headOf(stream: Uint8Array): DataView {
  return new DataView(stream.buffer, stream.byteOffset, FRAME_HEADER_BYTES);
}

/** Cuts a stream of bytes into frames. Holds at most one incomplete frame. */
export class FrameDecoder {
  readonly #bodyBytesMax: number;
  #stored = new Uint8Array(0);
  #storedBytes = 0;

  constructor(bodyBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
  }

  /**
   * Calls back for each frame that is complete now, while the callback returns true. Throws a
   * DecodeError if the stream is no good any more: as soon as a header claims a body above the
   * limit, before that body has come.
   */
  push(chunk: Uint8Array, deliver: (frame: Frame) => boolean): void {
    let stream = chunk;
    if (this.#storedBytes > 0) {
      this.#store(chunk);
      stream = this.#stored.subarray(0, this.#storedBytes);
      if (!this.#beginsWithFrame(stream)) return;
      // What is delivered may be used while more is stored: these bytes are left alone from now on.
      this.#stored = new Uint8Array(0);
      this.#storedBytes = 0;
    }
    while (this.#beginsWithFrame(stream)) {
      const head = headOf(stream);
      const end = FRAME_HEADER_BYTES + head.getUint32(8, true);
      const body = stream.subarray(FRAME_HEADER_BYTES, end);
      stream = stream.subarray(end);
      if (!deliver(parseFrame(head.getInt32(0, true), head.getInt32(4, true), body))) return;
    }
    this.#store(stream);
  }

  /** Whether a whole frame is there. */
  #beginsWithFrame(stream: Uint8Array): boolean {
    if (stream.length < FRAME_HEADER_BYTES) return false;
    const head = headOf(stream);
    const bodyBytes = head.getUint32(8, true);
    if (bodyBytes > this.#bodyBytesMax) {
      throw new DecodeError(
        `a frame of module ${head.getInt32(0, true)} claims ${bodyBytes} bytes, ` +
          `at most ${this.#bodyBytesMax} are accepted`,
      );
    }
    return stream.length >= FRAME_HEADER_BYTES + bodyBytes;
  }

  #store(bytes: Uint8Array): void {
    const needed = this.#storedBytes + bytes.length;
    if (needed > this.#stored.length) {
      // Twice what is there, not what a header claims: bytes must come before memory is given.
      const grown = new Uint8Array(Math.max(needed, 2 * this.#stored.length));
      grown.set(this.#stored.subarray(0, this.#storedBytes));
      this.#stored = grown;
    }
    this.#stored.set(bytes, this.#storedBytes);
    this.#storedBytes = needed;
  }
}
