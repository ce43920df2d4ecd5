// Deep copies of data, as defined by the structured clone algorithm.
(function () {
  'use strict';
  const refuse = (value) => {
    const error = new Error(`${typeof value === 'function' ? value : String(value)} could not be cloned.`);
    error.name = 'DataCloneError';
    throw error;
  };
  const define = (made, key, value) =>
    Object.defineProperty(made, key, { value, writable: true, enumerable: true, configurable: true });
  const copy = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') refuse(value);
    if (value === null || typeof value !== 'object') return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };
    if (Array.isArray(value)) {
      const made = keep(new Array(value.length));
      for (const key of Object.keys(value)) define(made, key, copy(value[key], seen));
      return made;
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, entry] of value) made.set(copy(key, seen), copy(entry, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const entry of value) made.add(copy(entry, seen));
      return made;
    }
    if (value instanceof Error) {
      const known = { __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
      const made = keep(new (known[value.name] ?? Error)(value.message));
      if ('cause' in value) made.cause = copy(value.cause, seen);
      return made;
    }
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (value instanceof DataView) return keep(new DataView(copy(value.buffer, seen), value.byteOffset, value.byteLength));
    if (ArrayBuffer.isView(value)) {
      return keep(new value.constructor(copy(value.buffer, seen), value.byteOffset, value.length));
    }
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return keep(Object(value.valueOf()));
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) refuse(value);
    const made = keep({});
    for (const key of Object.keys(value)) {
      define(made, key, copy(value[key], seen));
    }
    return made;
  };
  return { structuredClone: function structuredClone(value) { return copy(value, new Map()); } };
})
