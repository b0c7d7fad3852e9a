import { EncodeError } from "./errors.js";
import { DEPTH_MAX, FIELD_ID_MAX, type TypeCode } from "./type_code.js";
import { utf8Length, utf8Write } from "./utf8.js";

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;

/** No peer reads a longer encoding. */
const ENCODED_BYTES_MAX = 2 ** 30;

/**
 * The growing output that beans and messages are encoded into. Numbers take the shortest form.
 *
 *     const out = new ByteWriter();
 *     let last = out.writeTag(0, 1, TypeCode.Integer);
 *     out.writeInt(42);
 *     out.writeEnd();
 *     socket.send(out.toBytes());
 */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #size = 0;
  #depth = 0;

  constructor(roomBytes = 128) {
    this.#bytes = new Uint8Array(roomBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get size(): number {
    return this.#size;
  }

  /** A copy of what was written. */
  toBytes(): Uint8Array {
    return this.#bytes.slice(0, this.#size);
  }

  /** Forgets everything behind the first `size` bytes. */
  truncate(size: number): void {
    this.#size = Math.min(size, this.#size);
  }

  /** Runs the encoding of one bean; throws when no peer could read beans nested so deep. */
  nested(encode: () => void): void {
    if (this.#depth >= DEPTH_MAX) {
      throw new EncodeError(`beans are nested deeper than ${DEPTH_MAX}`);
    }
    ++this.#depth;
    try {
      encode();
    } finally {
      --this.#depth;
    }
  }

  writeByte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#size++] = value;
  }

  writeBool(value: boolean): void {
    this.writeByte(value ? 1 : 0);
  }

  /** An unsigned varint of 32 bits. */
  writeUint(value: number): void {
    checkRange(value, 0, 0xffff_ffff, "uint");
    this.#writeUnsigned(value);
  }

  /** An unsigned varint of 64 bits. */
  writeUlong(value: bigint): void {
    if (value < 0n || value > UINT64_MAX) throw new EncodeError(`${value} is no ulong`);
    if (value < 2n ** 49n) {
      this.#writeUnsigned(Number(value));
    } else if (value < 2n ** 56n) {
      this.#reserve(8);
      this.#view.setBigUint64(this.#size, value | (0xfen << 56n));
      this.#size += 8;
    } else {
      this.writeByte(0xff);
      this.#reserve(8);
      this.#view.setBigUint64(this.#size, value);
      this.#size += 8;
    }
  }

  /** The signed varint of every integer field and key, for whole numbers below 2^48. */
  writeInt(value: number): void {
    if (!Number.isInteger(value)) throw new EncodeError(`${value} is no whole number`);
    const magnitude = value < 0 ? -1 - value : value;
    if (magnitude < 0x40) {
      this.writeByte(value & 0xff);
      return;
    }
    // A zero bit, as many ones as bytes follow, and another zero bit; all complemented for a
    // negative number, whose magnitude is its complement.
    let count = 2;
    for (let limit = 2 ** 13; magnitude >= limit; limit *= 128) ++count;
    if (count > 7) throw new EncodeError(`${value} does not fit 49 bits: write it as a long`);
    const flip = value < 0 ? 0xff : 0;
    this.#writeBigEndian(magnitude, count, (0x7f << (8 - count)) & 0x7f, flip);
  }

  /** The signed varint, for all 64 bits. */
  writeLong(value: bigint): void {
    if (value < INT64_MIN || value > INT64_MAX) {
      throw new EncodeError(`${value} does not fit the 64 bits of a long`);
    }
    const magnitude = value < 0n ? -1n - value : value;
    if (magnitude < 2n ** 48n) {
      this.writeInt(Number(value));
      return;
    }
    const flip = value < 0n ? UINT64_MAX : 0n;
    if (magnitude < 2n ** 55n) {
      this.#reserve(8);
      this.#view.setBigUint64(this.#size, (magnitude | (0x7fn << 56n)) ^ flip);
    } else {
      this.writeByte(value < 0n ? 0x80 : 0x7f);
      this.#reserve(8);
      this.#view.setBigUint64(this.#size, (magnitude ^ flip ^ (1n << 63n)) & UINT64_MAX);
    }
    this.#size += 8;
  }

  /** 4 bytes, little-endian. */
  writeInt4(value: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#size, value, true);
    this.#size += 4;
  }

  /** 8 bytes, little-endian. */
  writeLong8(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigInt64(this.#size, value, true);
    this.#size += 8;
  }

  writeInt4BigEndian(value: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#size, value);
    this.#size += 4;
  }

  writeLong8BigEndian(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigInt64(this.#size, value);
    this.#size += 8;
  }

  writeFloat(value: number): void {
    this.#reserve(4);
    this.#view.setFloat32(this.#size, value, true);
    this.#size += 4;
  }

  writeDouble(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#size, value, true);
    this.#size += 8;
  }

  /** Length and bytes. */
  writeBytes(bytes: Uint8Array): void {
    this.writeUint(bytes.length);
    this.writeRaw(bytes);
  }

  /** Length and UTF-8. */
  writeString(text: string): void {
    const length = utf8Length(text);
    this.writeUint(length);
    this.#reserve(length);
    utf8Write(text, this.#bytes, this.#size);
    this.#size += length;
  }

  /** The bytes alone. */
  writeRaw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#size);
    this.#size += bytes.length;
  }

  /**
   * The tag of a field; returns the id, which the next tag needs as `lastId`. Fields are written in
   * ascending order of their ids, the first with a `lastId` of 0.
   */
  writeTag(lastId: number, id: number, type: TypeCode): number {
    if (id <= lastId || id > FIELD_ID_MAX) {
      throw new EncodeError(`field id ${id} behind field id ${lastId}`);
    }
    this.#writeNibble(id - lastId, type);
    return id;
  }

  /** The end of a bean. */
  writeEnd(): void {
    this.writeByte(0x00);
  }

  /** The end of the fields of a bean whose base bean follows. */
  writeBaseMark(): void {
    this.writeByte(0x01);
  }

  writeListHeader(count: number, element: TypeCode): void {
    this.#writeNibble(count, element);
  }

  writeMapHeader(count: number, key: TypeCode, value: TypeCode): void {
    this.writeByte((key << 4) | value);
    this.writeUint(count);
  }

  /** Begins a block behind its length as 4 bytes; the result goes to endSize4. */
  beginSize4(): number {
    this.writeInt4(0);
    return this.#size;
  }

  endSize4(begin: number): void {
    this.#view.setUint32(begin - 4, this.#size - begin, true);
  }

  #writeNibble(number: number, code: TypeCode): void {
    if (number < 15) {
      this.writeByte((number << 4) | code);
    } else {
      this.writeByte(0xf0 | code);
      this.writeUint(number - 15);
    }
  }

  /** For numbers below 2^49: as many leading ones as bytes follow. */
  #writeUnsigned(value: number): void {
    let count = 1;
    for (let limit = 2 ** 7; value >= limit; limit *= 128) ++count;
    this.#writeBigEndian(value, count, (0xff << (9 - count)) & 0xff, 0);
  }

  #writeBigEndian(value: number, count: number, prefix: number, flip: number): void {
    this.#reserve(count);
    for (let i = count - 1; i > 0; --i) {
      this.#bytes[this.#size + i] = (value % 256) ^ flip;
      value = Math.floor(value / 256);
    }
    this.#bytes[this.#size] = (value | prefix) ^ flip;
    this.#size += count;
  }

  #reserve(bytes: number): void {
    const needed = this.#size + bytes;
    if (needed <= this.#bytes.length) return;
    if (needed > ENCODED_BYTES_MAX) throw new EncodeError("an encoding has at most 1 GiB");
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Throws unless the value is a whole number in the range. */
export function checkRange(value: number, least: number, most: number, type: string): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new EncodeError(`${value} is no ${type} (a whole number from ${least} to ${most})`);
  }
}
