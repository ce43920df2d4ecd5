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
    utf16le: [
      (text) => Array.from({ length: text.length * 2 }, (_, at) => (text.charCodeAt(at >> 1) >> (at % 2 ? 8 : 0)) & 255),
      (bytes) => {
        let text = '';
        for (let at = 0; at + 1 < bytes.length; at += 2) text += String.fromCharCode(bytes[at] | (bytes[at + 1] << 8));
        return text;
      },
    ],
  };
  const ALIASES = { 'utf-8': 'utf8', binary: 'latin1', ucs2: 'utf16le', 'ucs-2': 'utf16le', 'utf-16le': 'utf16le' };
  const encoding = (name = 'utf8') => {
    const lower = String(name).toLowerCase();
    const known = encoded[ALIASES[lower] ?? lower];
    if (known === undefined) {
      throw new TypeError(`Buffer with the encoding \`${name}\` is not available here: it knows ${Object.keys(encoded).join(', ')}`);
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

  // Returns what to search for as bytes.
  const sought = (value, name) => {
    if (typeof value === 'number') return [value & 255];
    return typeof value === 'string' ? encoding(name)[0](value) : value;
  };
  const isAt = (buffer, bytes, at) => bytes.every((byte, index) => buffer[at + index] === byte);
  const methods = {
    copy(target, at = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + Math.max(target.length - at, 0)));
      target.set(part, at);
      return part.length;
    },
    indexOf(value, start, name) {
      if (typeof start === 'string') [start, name] = [0, start];
      const bytes = Array.from(sought(value, name));
      let at = Math.trunc(start ?? 0) || 0;
      for (at = at < 0 ? Math.max(this.length + at, 0) : at; at + bytes.length <= this.length; at += 1) {
        if (isAt(this, bytes, at)) return at;
      }
      return -1;
    },
    lastIndexOf(value, start, name) {
      if (typeof start === 'string') [start, name] = [undefined, start];
      const bytes = Array.from(sought(value, name));
      let at = start === undefined ? this.length : Math.trunc(start) || 0;
      if (at < 0) at += this.length;
      for (at = Math.min(at, this.length - bytes.length); at >= 0; at -= 1) {
        if (isAt(this, bytes, at)) return at;
      }
      return -1;
    },
    includes(value, start, name) {
      return this.indexOf(value, start, name) !== -1;
    },
  };
  const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  const number = (kind, size, names, little) => {
    for (const name of names) {
      methods[`read${name}`] = function (at = 0) {
        return view(this)[`get${kind}`](at, little);
      };
      methods[`write${name}`] = function (value, at = 0) {
        view(this)[`set${kind}`](at, value, little);
        return at + size;
      };
    }
  };
  const NUMBERS = { Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, BigInt64: 8, BigUint64: 8, Float32: 4, Float64: 8 };
  const NAMES = { Float32: 'Float', Float64: 'Double' };
  for (const [kind, size] of Object.entries(NUMBERS)) {
    const plain = NAMES[kind] ?? kind;
    for (const [end, little] of size === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
      number(kind, size, [...new Set([plain, plain.replace('Uint', 'UInt')])].map((name) => name + end), little);
    }
  }
  // Numbers of up to six bytes.
  const order = (length, little) => Array.from({ length }, (_, at) => (little ? length - 1 - at : at));
  for (const [end, little] of [['LE', true], ['BE', false]]) {
    const read = (buffer, at, length) => order(length, little).reduce((sum, index) => sum * 256 + buffer.readUInt8(at + index), 0);
    const write = (buffer, value, at, length) => {
      let rest = value < 0 ? value + 256 ** length : value;
      for (const index of order(length, little).reverse()) {
        buffer.writeUInt8(rest % 256, at + index);
        rest = Math.floor(rest / 256);
      }
      return at + length;
    };
    for (const name of ['UInt', 'Uint']) {
      methods[`read${name}${end}`] = function (at, length) {
        return read(this, at, length);
      };
      methods[`write${name}${end}`] = function (value, at, length) {
        return write(this, value, at, length);
      };
    }
    methods[`readInt${end}`] = function (at, length) {
      const value = read(this, at, length);
      return value < 256 ** length / 2 ? value : value - 256 ** length;
    };
    methods[`writeInt${end}`] = methods[`writeUInt${end}`];
  }
  for (const size of [2, 4, 8]) {
    methods[`swap${size * 8}`] = function () {
      if (this.length % size !== 0) throw new RangeError(`Buffer size must be a multiple of ${size * 8}-bits`);
      for (let at = 0; at < this.length; at += size) this.subarray(at, at + size).reverse();
      return this;
    };
  }
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(Buffer.prototype, name, { value, writable: true, configurable: true, enumerable: false });
  }

  return { Buffer };
})
