import { inspect, format, isDeepStrictEqual } from 'internal:compare';
export { inspect, format, isDeepStrictEqual };
export function promisify(call) {
  return function (...parts) {
    return new Promise((resolve, reject) => {
      call.call(this, ...parts, (error, value) => (error ? reject(error) : resolve(value)));
    });
  };
}
export function callbackify(call) {
  return function (...parts) {
    const callback = parts.pop();
    Promise.resolve(call.apply(this, parts)).then((value) => callback(null, value), (error) => callback(error));
  };
}
export function inherits(constructor, base) {
  Object.setPrototypeOf(constructor.prototype, base.prototype);
  Object.setPrototypeOf(constructor, base);
}
export const deprecate = (call) => call;
export const { TextEncoder, TextDecoder } = globalThis;
export const types = {
  isDate: (value) => value instanceof Date,
  isRegExp: (value) => value instanceof RegExp,
  isPromise: (value) => value instanceof Promise,
  isMap: (value) => value instanceof Map,
  isSet: (value) => value instanceof Set,
  isNativeError: (value) => value instanceof Error,
  isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
};
export default {
  inspect, format, isDeepStrictEqual, promisify, callbackify, inherits, deprecate, types, TextEncoder, TextDecoder,
};
