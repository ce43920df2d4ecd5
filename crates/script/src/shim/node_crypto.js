export const webcrypto = globalThis.crypto;
export const getRandomValues = (array) => webcrypto.getRandomValues(array);
export const randomUUID = () => webcrypto.randomUUID();
export const randomFillSync = (buffer, offset = 0, size = buffer.byteLength - offset) => {
  const bytes = new Uint8Array(buffer.buffer ?? buffer, (buffer.byteOffset ?? 0) + offset, size);
  for (let at = 0; at < size; at += 65536) webcrypto.getRandomValues(bytes.subarray(at, at + 65536));
  return buffer;
};
export const randomBytes = (size) => randomFillSync(Buffer.alloc(size));
export const randomInt = (first, second) => {
  const [low, high] = second === undefined ? [0, first] : [first, second];
  const range = high - low;
  if (!(Number.isSafeInteger(range) && range > 0)) throw new RangeError('randomInt takes whole numbers, the smaller one first');
  const most = 2 ** 48 - (2 ** 48 % range);
  for (;;) {
    const number = randomBytes(6).reduce((sum, byte) => sum * 256 + byte, 0);
    if (number < most) return low + (number % range);
  }
};
const refuse = (name) => () => {
  throw new ReferenceError(`crypto.${name} is not available here: scripts have random numbers and no ciphers or hashes`);
};
export const createHash = refuse('createHash');
export const createHmac = refuse('createHmac');
export const createCipheriv = refuse('createCipheriv');
export const createDecipheriv = refuse('createDecipheriv');
export const createSign = refuse('createSign');
export const createVerify = refuse('createVerify');
export const generateKeyPair = refuse('generateKeyPair');
export const generateKeyPairSync = refuse('generateKeyPairSync');
export const getHashes = refuse('getHashes');
export const hash = refuse('hash');
export const pbkdf2 = refuse('pbkdf2');
export const pbkdf2Sync = refuse('pbkdf2Sync');
export const scrypt = refuse('scrypt');
export const scryptSync = refuse('scryptSync');
export const sign = refuse('sign');
export const verify = refuse('verify');
export const subtle = webcrypto.subtle;
export const timingSafeEqual = (one, other) => {
  if (one.byteLength !== other.byteLength) throw new RangeError('timingSafeEqual takes two buffers of the same length');
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) === 0;
};
export default {
  webcrypto, getRandomValues, randomUUID, randomFillSync, randomBytes, randomInt, createHash, createHmac, createCipheriv,
  createDecipheriv, createSign, createVerify, generateKeyPair, generateKeyPairSync, getHashes, hash, pbkdf2, pbkdf2Sync,
  scrypt, scryptSync, sign, verify, subtle, timingSafeEqual,
};
