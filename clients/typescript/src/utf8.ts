// UTF-8 as the peers write and read it. The platform's own encoder would not do: a surrogate
// without its partner is written as three bytes, and malformed bytes become U+FFFD in the portions
// that Java and C++ choose.

import { platform } from "./platform.js";

const strictDecoder = new platform.TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Below this many bytes our own loop is faster than the call of the platform's decoder. */
const SHORT_BYTES = 24;

/** Whether the unit at `index` begins a surrogate pair. */
function isPair(text: string, index: number, unit: number): boolean {
  if (unit < 0xd800 || unit > 0xdbff || index + 1 >= text.length) return false;
  const next = text.charCodeAt(index + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; ++i) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) {
      bytes += 1;
    } else if (unit < 0x800) {
      bytes += 2;
    } else if (isPair(text, i, unit)) {
      bytes += 4;
      ++i;
    } else {
      bytes += 3;
    }
  }
  return bytes;
}

/** Writes the text at `at`, where utf8Length(text) bytes of room must be. */
export function utf8Write(text: string, bytes: Uint8Array, at: number): void {
  for (let i = 0; i < text.length; ++i) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) {
      bytes[at++] = unit;
    } else if (unit < 0x800) {
      bytes[at++] = 0xc0 | (unit >> 6);
      bytes[at++] = 0x80 | (unit & 0x3f);
    } else if (isPair(text, i, unit)) {
      const point = 0x10000 + ((unit & 0x3ff) << 10) + (text.charCodeAt(++i) & 0x3ff);
      bytes[at++] = 0xf0 | (point >> 18);
      bytes[at++] = 0x80 | ((point >> 12) & 0x3f);
      bytes[at++] = 0x80 | ((point >> 6) & 0x3f);
      bytes[at++] = 0x80 | (point & 0x3f);
    } else {
      bytes[at++] = 0xe0 | (unit >> 12);
      bytes[at++] = 0x80 | ((unit >> 6) & 0x3f);
      bytes[at++] = 0x80 | (unit & 0x3f);
    }
  }
}

function sequenceBytes(first: number): number {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

/**
 * What the second byte of a sequence may be, which excludes over-long forms and numbers above
 * U+10FFFF. Surrogates are let through: they are well-shaped and rejected as a whole.
 */
function isSecondByte(first: number, second: number): boolean {
  if (first === 0xe0) return second >= 0xa0 && second <= 0xbf;
  if (first === 0xf0) return second >= 0x90 && second <= 0xbf;
  if (first === 0xf4) return second >= 0x80 && second <= 0x8f;
  return second >= 0x80 && second <= 0xbf;
}

/** How many bytes from `at` belong together; negative when they are not a character. */
function nextSequence(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  const length = sequenceBytes(first);
  if (length <= 1) return length === 1 ? 1 : -1;
  for (let i = 1; i < length; ++i) {
    const byte = bytes[at + i];
    if (byte === undefined) return -i;
    const fits = i === 1 ? isSecondByte(first, byte) : (byte & 0xc0) === 0x80;
    if (!fits) return -i;
  }
  const isSurrogate = first === 0xed && (bytes[at + 1] ?? 0) >= 0xa0;
  return isSurrogate ? -length : length;
}

/** The text, with U+FFFD in place of each malformed part. */
function decodeAnything(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = nextSequence(bytes, at);
    const first = bytes[at] ?? 0;
    if (length === 1) {
      text += String.fromCharCode(first);
    } else if (length < 0) {
      text += "\ufffd";
    } else {
      let point = first & (0x7f >> length);
      for (let i = 1; i < length; ++i) point = (point << 6) | ((bytes[at + i] ?? 0) & 0x3f);
      text += String.fromCodePoint(point);
    }
    at += Math.abs(length);
  }
  return text;
}

export function utf8Decode(bytes: Uint8Array): string {
  if (bytes.length < SHORT_BYTES) return decodeAnything(bytes);
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return decodeAnything(bytes);
  }
}

/** Orders texts as their UTF-8 bytes are ordered, which is how sorted maps are written. */
export function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; ++i) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for characters above U+FFFF, behind all others. */
function codePointRank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
