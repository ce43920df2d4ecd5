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
export default { webcrypto, getRandomValues, randomUUID, randomFillSync, randomBytes, randomInt, createHash, createHmac };
