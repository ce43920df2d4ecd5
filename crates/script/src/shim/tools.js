// Runs before the user's code. Only the program sees the returned object.
(function () {
  'use strict';
  const { RegExp, Map, Set, WeakMap, Error, Promise, Object, String, Number, Boolean, BigInt, ArrayBuffer } = globalThis;
  const { defineProperty, getPrototypeOf, isExtensible, prototype: plain } = Object;
  const from = Array.from.bind(Array);
  const isView = ArrayBuffer.isView;
  const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
  const ids = new WeakMap();
  const set = WeakMap.prototype.set.bind(ids);
  const known = WeakMap.prototype.get.bind(ids);
  const resolve = Promise.resolve.bind(Promise);
  const then = Promise.prototype.then;
  const apply = Reflect.apply;
  const ignore = () => {};
  let next = 0;

  const kind = (value) => {
    const prototype = getPrototypeOf(value);
    if (prototype === plain || prototype === null) return typeof value.toJSON === 'function' ? 2 : 0;
    if (value instanceof RegExp) return 1;
    if (typeof value.toJSON === 'function' || value instanceof Map || value instanceof Set || value instanceof Error) return 2;
    if (isView(value) || value instanceof ArrayBuffer) return 2;
    if (value instanceof String || value instanceof Number || value instanceof Boolean) return 2;
    return 0;
  };

  const replace = (value) => {
    if (typeof value === 'bigint') {
      const number = Number(value);
      return BigInt(number) === value ? number : String(value);
    }
    if (typeof value.toJSON === 'function') {
      const json = value.toJSON();
      return json === value ? { ...value, toJSON: undefined } : json;
    }
    if (value instanceof Map) {
      const entries = {};
      for (const [key, entry] of value) {
        const name = typeof key === 'symbol' ? key.description : key;
        defineProperty(entries, name, { value: entry, writable: true, enumerable: true, configurable: true });
      }
      return entries;
    }
    if (value instanceof Set) return from(value);
    if (value instanceof Error) return { name: value.name, message: value.message, ...value };
    if (value instanceof ArrayBuffer) return from(new Uint8Array(value));
    if (isView(value)) return from(value instanceof DataView ? new Uint8Array(value.buffer) : value);
    return value.valueOf();
  };

  return {
    RegExp,
    kind,
    replace,
    wellFormed,
    index(f) {
      let id = known(f);
      if (id === undefined) {
        id = next++;
        set(f, id);
      }
      return id;
    },
    error: (message) => new Error(message),
    // Returns a promise for any value. The program handles its rejection, so it never counts as unhandled.
    promise(value) {
      const promise = resolve(value);
      apply(then, promise, [ignore, ignore]);
      return promise;
    },
    parse: JSON.parse,
    has: Object.hasOwn,
    isExtensible,
  };
})
