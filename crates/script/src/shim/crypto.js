// The system's random numbers, with the interface of Web Crypto. `random(length)` returns an ArrayBuffer of them.
(function (random) {
  'use strict';
  const MAX_BYTES = 65536;
  const wrong = (name, message) => {
    const error = new Error(message);
    error.name = name;
    throw error;
  };
  const INTEGERS = [
    Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
  ];
  const bytes = (length) => new Uint8Array(random(length));
  const hex = (part) => Array.from(part, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const crypto = {
    getRandomValues(array) {
      if (!INTEGERS.some((kind) => array instanceof kind)) {
        wrong('TypeMismatchError', 'crypto.getRandomValues takes a typed array of whole numbers');
      }
      if (array.byteLength > MAX_BYTES) {
        wrong('QuotaExceededError', `crypto.getRandomValues fills at most ${MAX_BYTES} bytes at once`);
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes(array.byteLength));
      return array;
    },
    randomUUID() {
      const id = bytes(16);
      id[6] = (id[6] & 0x0f) | 0x40;
      id[8] = (id[8] & 0x3f) | 0x80;
      return [id.slice(0, 4), id.slice(4, 6), id.slice(6, 8), id.slice(8, 10), id.slice(10)].map(hex).join('-');
    },
  };
  const subtle = {};
  for (const name of [
    'decrypt', 'deriveBits', 'deriveKey', 'digest', 'encrypt', 'exportKey', 'generateKey', 'importKey', 'sign', 'unwrapKey',
    'verify', 'wrapKey',
  ]) {
    subtle[name] = () => {
      throw new ReferenceError(
        `crypto.subtle.${name} is not available here: scripts have random numbers and no ciphers or hashes`,
      );
    };
  }
  crypto.subtle = subtle;
  return { crypto };
})
