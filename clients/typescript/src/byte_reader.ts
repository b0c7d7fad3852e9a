import { DecodeError } from "./errors.js";
import {
  DEPTH_MAX,
  FIELD_ID_MAX,
  isTypeCode,
  minEncodedBytes,
  TypeCode,
  typeCodeName,
} from "./type_code.js";
import { utf8Decode } from "./utf8.js";

/** A field, the mark of a base bean, or the end of a bean. */
export type Tag =
  | { readonly kind: "field"; readonly id: number; readonly type: TypeCode }
  | { readonly kind: "base" }
  | { readonly kind: "end" };

const BASE: Tag = { kind: "base" };
const END: Tag = { kind: "end" };

/**
 * Reads what a ByteWriter, or another implementation of the formats, wrote. Bytes from outside may
 * be anything: whatever is wrong throws a DecodeError that says what and where, nothing is read
 * outside the bytes, and no count or length makes memory grow before the bytes behind it are there.
 */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position = 0;
  #depth = 0;
  #containerDepth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get position(): number {
    return this.#position;
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  /** Throws, saying where. */
  fail(problem: string): never {
    throw new DecodeError(`${problem} at offset ${this.#position} of ${this.#bytes.length}`);
  }

  failType(declared: string, found: TypeCode): never {
    this.fail(`a value of type ${typeCodeName(found)} was found where ${declared} is declared`);
  }

  /** A copy of the bytes read since an earlier position. */
  since(begin: number): Uint8Array {
    return this.#bytes.slice(begin, this.#position);
  }

  readByte(): number {
    return this.#view.getUint8(this.#take(1));
  }

  /** Any varint but 0 is true. */
  readBool(): boolean {
    return this.#readSigned() != 0;
  }

  /** An unsigned varint; of a number above 32 bits the low ones. */
  readUint(): number {
    const value = this.#readUnsigned();
    return typeof value === "number" ? value % 2 ** 32 : Number(BigInt.asUintN(32, value));
  }

  readUlong(): bigint {
    return BigInt(this.#readUnsigned());
  }

  /** A signed varint; of a number above 32 bits the low ones. */
  readInt(): number {
    const value = this.#readSigned();
    return typeof value === "number" ? value | 0 : Number(BigInt.asIntN(32, value));
  }

  readLong(): bigint {
    return BigInt(this.#readSigned());
  }

  readInt4(): number {
    return this.#view.getInt32(this.#take(4), true);
  }

  readLong8(): bigint {
    return this.#view.getBigInt64(this.#take(8), true);
  }

  readInt4BigEndian(): number {
    return this.#view.getInt32(this.#take(4));
  }

  readLong8BigEndian(): bigint {
    return this.#view.getBigInt64(this.#take(8));
  }

  readFloat(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  readDouble(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Length and bytes, as a copy. */
  readBytes(): Uint8Array {
    const length = this.readUint();
    const begin = this.#take(length);
    return this.#bytes.slice(begin, begin + length);
  }

  /** Length and UTF-8; malformed parts become U+FFFD. */
  readString(): string {
    const length = this.readUint();
    const begin = this.#take(length);
    return utf8Decode(this.#bytes.subarray(begin, begin + length));
  }

  /** A block behind its length as 4 bytes. */
  readSize4(): ByteReader {
    const length = this.readInt4() >>> 0;
    const begin = this.#take(length);
    return new ByteReader(this.#bytes.subarray(begin, begin + length));
  }

  /** The next tag; `lastId` is the id of the field before it, 0 before the first. */
  readTag(lastId: number): Tag {
    const byte = this.readByte();
    if (byte < 0x10) {
      if (byte === 0x00) return END;
      if (byte === 0x01) return BASE;
      return this.fail(`byte ${byte} is no tag`);
    }
    const delta = byte >> 4 < 15 ? byte >> 4 : 15 + this.readUint();
    const id = lastId + delta;
    if (id > FIELD_ID_MAX) this.fail(`field id ${id} is above ${FIELD_ID_MAX}`);
    return { kind: "field", id, type: this.#checkTypeCode(byte & 0x0f) };
  }

  /** Type and number of the elements that follow; there are bytes for that many. */
  readListHeader(): { count: number; element: TypeCode } {
    const byte = this.readByte();
    const count = byte >> 4 < 15 ? byte >> 4 : 15 + this.readUint();
    const element = this.#checkTypeCode(byte & 0x0f);
    this.#checkCount(count, minEncodedBytes(element));
    return { count, element };
  }

  readMapHeader(): { count: number; key: TypeCode; value: TypeCode } {
    const byte = this.readByte();
    const count = this.readUint();
    const key = this.#checkTypeCode(byte >> 4);
    const value = this.#checkTypeCode(byte & 0x0f);
    this.#checkCount(count, minEncodedBytes(key) + minEncodedBytes(value));
    return { count, key, value };
  }

  /** Passes over a value. Of a bean everything up to its end, base beans included. */
  skip(type: TypeCode): void {
    switch (type) {
      case TypeCode.Integer:
        this.#readSigned();
        return;
      case TypeCode.Float:
        this.#take(4);
        return;
      case TypeCode.Double:
      case TypeCode.Vector2:
        this.#take(8);
        return;
      case TypeCode.Vector3:
        this.#take(12);
        return;
      case TypeCode.Vector4:
        this.#take(16);
        return;
      case TypeCode.Bytes:
        this.#take(this.readUint());
        return;
      case TypeCode.Vector2Int:
        this.#skipIntegers(2);
        return;
      case TypeCode.Vector3Int:
        this.#skipIntegers(3);
        return;
      case TypeCode.List:
        this.#skipContainer(() => {
          const { count, element } = this.readListHeader();
          for (let i = 0; i < count; ++i) this.skip(element);
        });
        return;
      case TypeCode.Map:
        this.#skipContainer(() => {
          const { count, key, value } = this.readMapHeader();
          for (let i = 0; i < count; ++i) {
            this.skip(key);
            this.skip(value);
          }
        });
        return;
      case TypeCode.Dynamic:
        this.#readSigned();
        this.nested(() => this.skipFields());
        return;
      case TypeCode.Bean:
        this.nested(() => this.skipFields());
        return;
    }
  }

  /** Passes over the fields up to the end of a bean; those of a base follow without nesting. */
  skipFields(): void {
    let lastId = 0;
    for (let tag = this.readTag(0); tag.kind !== "end"; tag = this.readTag(lastId)) {
      lastId = tag.kind === "field" ? tag.id : 0;
      if (tag.kind === "field") this.skip(tag.type);
    }
  }

  /** Runs the decoding of one bean; fails when beans are nested too deep. */
  nested<T>(decode: () => T): T {
    if (++this.#depth > DEPTH_MAX) this.fail(`values are nested deeper than ${DEPTH_MAX}`);
    const result = decode();
    --this.#depth;
    return result;
  }

  /** Counted apart from beans, so that whatever can be decoded can be skipped, too. */
  #skipContainer(skipElements: () => void): void {
    if (++this.#containerDepth > DEPTH_MAX) {
      this.fail(`containers are nested deeper than ${DEPTH_MAX}`);
    }
    skipElements();
    --this.#containerDepth;
  }

  #skipIntegers(count: number): void {
    for (let i = 0; i < count; ++i) this.#readSigned();
  }

  /** Moves past that many bytes and returns where they begin. */
  #take(bytes: number): number {
    if (bytes > this.remaining) this.fail(`${bytes} bytes are needed, ${this.remaining} are left`);
    const begin = this.#position;
    this.#position += bytes;
    return begin;
  }

  #checkTypeCode(code: number): TypeCode {
    return isTypeCode(code) ? code : this.fail(`${code} is no type code`);
  }

  #checkCount(count: number, elementBytesMin: number): void {
    if (count * elementBytesMin <= this.remaining) return;
    this.fail(
      `${count} elements of at least ${elementBytesMin} bytes are claimed, ` +
        `${this.remaining} bytes are left`,
    );
  }

  /** A bigint only where 53 bits may not be enough. */
  #readUnsigned(): number | bigint {
    const first = this.readByte();
    if (first < 0x80) return first;
    const more = Math.clz32(~(first << 24)); // Leading ones: bytes that follow.
    if (more < 7) return this.#readBigEndian(first & (0x7f >> more), more);
    if (more === 8) return this.#view.getBigUint64(this.#take(8));
    return BigInt(this.#readBigEndian(0, 3)) * 2n ** 32n + BigInt(this.#readBigEndian(0, 4));
  }

  #readSigned(): number | bigint {
    const first = this.readByte();
    if (first < 0x40) return first;
    if (first >= 0xc0) return first - 0x100;
    // A negative number is the complement of what its complemented bits mean.
    const flip = first >= 0x80 ? 0xff : 0;
    const head = first ^ flip;
    const more = Math.clz32(~(head << 25)); // Ones behind the leading zero.
    if (more < 7) {
      const magnitude = this.#readBigEndian(head & (0x3f >> more), more, flip);
      return flip === 0 ? magnitude : -1 - magnitude;
    }
    const high = this.#readBigEndian(0, 3, flip);
    const low = this.#readBigEndian(0, 4, flip);
    let magnitude = BigInt(high) * 2n ** 32n + BigInt(low);
    if (high >= 2 ** 23) {
      magnitude = (magnitude - 2n ** 55n) * 256n + BigInt(this.readByte() ^ flip);
    }
    return flip === 0 ? magnitude : -1n - magnitude;
  }

  #readBigEndian(value: number, count: number, flip = 0): number {
    const begin = this.#take(count);
    for (let i = 0; i < count; ++i) {
      value = value * 256 + (this.#view.getUint8(begin + i) ^ flip);
    }
    return value;
  }
}
