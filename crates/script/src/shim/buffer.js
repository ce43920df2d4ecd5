// The part of Node.js's `Buffer` that tests and small packages need.
(function () {
  'use strict';
  const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const VALUES = new Map([...LETTERS].map((letter, value) => [letter, value]));
  VALUES.set('-', 62).set('_', 63);

  const toBase64 = (bytes, letters = LETTERS, pad = '=') => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 3) {
      const left = bytes.length - at;
      const word = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      text += letters[word >> 18] + letters[(word >> 12) & 63];
      text += left > 1 ? letters[(word >> 6) & 63] : pad;
      text += left > 2 ? letters[word & 63] : pad;
    }
    return text;
  };
  const fromBase64 = (text) => {
    const bytes = [];
    let [word, bits] = [0, 0];
    for (const letter of text) {
      const value = VALUES.get(letter);
      if (value === undefined) continue;
      word = ((word << 6) | value) & 0xffffff;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        bytes.push((word >> bits) & 255);
      }
    }
    return bytes;
  };
  const latin1 = (text) => Array.from({ length: text.length }, (_, at) => text.charCodeAt(at) & 255);
  const ofCodes = (bytes, most) => {
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte & most);
    return text;
  };
  const encoded = {
    utf8: [(text) => new TextEncoder().encode(text), (bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)],
    hex: [
      (text) => (/^(?:[0-9a-f]{2})*/i.exec(text)[0].match(/../g) ?? []).map((pair) => parseInt(pair, 16)),
      (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''),
    ],
    base64: [fromBase64, (bytes) => toBase64(bytes)],
    base64url: [fromBase64, (bytes) => toBase64(bytes, `${LETTERS.slice(0, 62)}-_`, '')],
    latin1: [latin1, (bytes) => ofCodes(bytes, 255)],
    ascii: [latin1, (bytes) => ofCodes(bytes, 127)],
  };
  const ALIASES = { 'utf-8': 'utf8', binary: 'latin1' };
  const encoding = (name = 'utf8') => {
    const lower = String(name).toLowerCase();
    const known = encoded[ALIASES[lower] ?? lower];
    if (known === undefined) {
      throw new TypeError(`Buffer knows no encoding \`${name}\` here; it knows ${Object.keys(encoded).join(', ')}`);
    }
    return known;
  };

  class Buffer extends Uint8Array {
    static from(given, second, length) {
      if (typeof given === 'string') return new Buffer(encoding(second)[0](given));
      if (given instanceof ArrayBuffer) return new Buffer(given, second, length);
      if (given?.type === 'Buffer' && Array.isArray(given.data)) return new Buffer(given.data);
      if (ArrayBuffer.isView(given) || Array.isArray(given)) return new Buffer(given);
      throw new TypeError('Buffer.from takes text, bytes or a list of numbers');
    }
    static of(...numbers) {
      return new Buffer(numbers);
    }
    static alloc(size, fill = 0, name = 'utf8') {
      const made = new Buffer(size);
      return fill === 0 ? made : made.fill(fill, 0, size, name);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static isEncoding(name) {
      const lower = String(name).toLowerCase();
      return Object.hasOwn(encoded, ALIASES[lower] ?? lower);
    }
    static byteLength(given, name) {
      return typeof given === 'string' ? encoding(name)[0](given).length : given.byteLength;
    }
    static concat(parts, size = parts.reduce((sum, part) => sum + part.length, 0)) {
      const whole = new Buffer(size);
      let at = 0;
      for (const part of parts) {
        const fitting = part.subarray(0, Math.max(size - at, 0));
        whole.set(fitting, at);
        at += fitting.length;
      }
      return whole;
    }
    static compare(one, other) {
      const end = Math.min(one.length, other.length);
      for (let at = 0; at < end; at += 1) {
        if (one[at] !== other[at]) return one[at] < other[at] ? -1 : 1;
      }
      return Math.sign(one.length - other.length);
    }
    toString(name, start = 0, end = this.length) {
      return encoding(name)[1](Uint8Array.prototype.subarray.call(this, start, end));
    }
    toJSON() {
      return { type: 'Buffer', data: Array.from(this) };
    }
    equals(other) {
      return Buffer.compare(this, other) === 0;
    }
    compare(other) {
      return Buffer.compare(this, other);
    }
    slice(start, end) {
      return this.subarray(start, end);
    }
    write(text, start = 0, ...rest) {
      const name = rest.find((one) => typeof one === 'string');
      const most = rest.find((one) => typeof one === 'number') ?? this.length - start;
      const written = Array.from(encoding(name)[0](text)).slice(0, Math.min(most, this.length - start));
      this.set(written, start);
      return written.length;
    }
    fill(value, start = 0, end = this.length, name = 'utf8') {
      const pattern = typeof value === 'number' ? [value] : Array.from(typeof value === 'string' ? encoding(name)[0](value) : value);
      for (let at = start; at < end; at += 1) this[at] = pattern.length === 0 ? 0 : pattern[(at - start) % pattern.length];
      return this;
    }
  }

  return { Buffer };
})
