// Encodes text as bytes, and decodes it.
(function () {
  'use strict';
  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      const bytes = [];
      for (const character of String(text).toWellFormed()) {
        const code = character.codePointAt(0);
        if (code < 0x80) bytes.push(code);
        else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
        else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
        else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      }
      return new Uint8Array(bytes);
    }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of String(text)) {
        const bytes = this.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }

  // Returns the length of the sequence that a byte starts, and the range of its second byte.
  const lead = (byte) => {
    if (byte < 0x80) return [1, 0, 0];
    if (byte >= 0xc2 && byte <= 0xdf) return [2, 0x80, 0xbf];
    if (byte === 0xe0) return [3, 0xa0, 0xbf];
    if (byte === 0xed) return [3, 0x80, 0x9f];
    if (byte >= 0xe1 && byte <= 0xef) return [3, 0x80, 0xbf];
    if (byte === 0xf0) return [4, 0x90, 0xbf];
    if (byte >= 0xf1 && byte <= 0xf3) return [4, 0x80, 0xbf];
    if (byte === 0xf4) return [4, 0x80, 0x8f];
    return [0, 0, 0];
  };

  // Other encodings that the standard names.
  const KNOWN = new RegExp(
    `^(${[
      'utf-16(le|be)?|ucs-2|unicode\\w*|iso-10646-ucs-2|cs\\w+|latin[1-6]|l[1-6]|(us-)?ascii|ansi_x3\\.4-1968',
      '(x-)?(cp|windows-)\\d+|ibm\\d+|dos-874|tis-620|iso[-_]?(ir-|8859)[\\w:-]*|(ecma|elot|asmo)[-_]\\d+|sun_eu_greek',
      'arabic|cyrillic|greek8?|hebrew|logical|visual|korean|chinese|koi8?[\\w-]*|(x-)?mac[\\w-]*|x-user-defined',
      '(x-)?gbk|gb_?[\\d-]+|big5(-hkscs)?|cn-big5|x-x-big5|(x-)?sjis|shift[-_]jis|ms_kanji|ms932|(x-)?euc-(jp|kr)',
      'iso-2022-[a-z-]+|hz-gb-2312|ks_?c_?[\\d-]+',
    ].join('|')})$`,
  );

  class TextDecoder {
    #fatal;
    #ignoreBOM;
    constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
      const name = String(label).trim().toLowerCase();
      if (!['utf-8', 'utf8', 'unicode-1-1-utf-8'].includes(name)) {
        if (!KNOWN.test(name)) throw new RangeError(`The "${label}" encoding is not supported`);
        throw new ReferenceError(`TextDecoder for ${name} is not available here: the script engine decodes only UTF-8`);
      }
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() {
      return 'utf-8';
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input = new Uint8Array()) {
      const bytes = ArrayBuffer.isView(input)
        ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
        : new Uint8Array(input);
      const parts = [];
      let at = 0;
      const wrong = () => {
        if (this.#fatal) throw new TypeError('The encoded data was not valid for encoding utf-8');
        parts.push('\ufffd');
      };
      if (!this.#ignoreBOM && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) at = 3;
      while (at < bytes.length) {
        const first = bytes[at++];
        const [length, low, high] = lead(first);
        if (length === 0) wrong();
        else if (length === 1) parts.push(String.fromCharCode(first));
        else {
          let code = first & (0xff >> (length + 1));
          let left = length - 1;
          let from = low;
          let to = high;
          while (left > 0 && at < bytes.length && bytes[at] >= from && bytes[at] <= to) {
            code = (code << 6) | (bytes[at++] & 63);
            left -= 1;
            from = 0x80;
            to = 0xbf;
          }
          if (left > 0) wrong();
          else parts.push(String.fromCodePoint(code));
        }
      }
      return parts.join('');
    }
  }
  return { TextEncoder, TextDecoder };
})
