// Returns a function that freezes everything a script can reach without a module, so that no script leaves anything
// behind for the next one: `everything`, or all except global variables created in between.
((everything) => {
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, freeze } = Object;
  const { ownKeys } = Reflect;
  const { isPrototypeOf } = Object.prototype;
  const has = Object.hasOwn;
  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  // A property that is inherited as read-only cannot be assigned. One that is inherited as an accessor can: the object
  // then gets its own property, as without freezing.
  const replaceable = (holder, key) => {
    const { value, writable, configurable, enumerable } = getOwnPropertyDescriptor(holder, key);
    if (!writable || !configurable) return;
    const accessor = {
      get() {
        return value;
      },
      set(own) {
        if (this === holder) throw new TypeError(`'${String(key)}' is read-only`);
        if (!isObject(this)) return;
        if (has(this, key)) defineProperty(this, key, { value: own });
        else defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
      },
    };
    defineProperty(holder, key, { get: accessor.get, set: accessor.set, enumerable, configurable: true });
  };
  // Accessors are slower than data properties, so the methods of arrays, strings and similar objects stay unchanged.
  const COMMON = ['constructor', 'toString', 'toLocaleString', 'valueOf', 'toJSON', 'name', 'message'];
  const isError = (object) => object === Error.prototype || isPrototypeOf.call(Error.prototype, object);
  const prepare = (prototype) => {
    const all = prototype === Object.prototype || isError(prototype);
    for (const key of all ? ownKeys(prototype) : COMMON) {
      if (has(prototype, key) && 'value' in getOwnPropertyDescriptor(prototype, key)) replaceable(prototype, key);
    }
  };
  const known = ownKeys(globalThis);
  return () => {
    // Properties that are created on first use must exist before objects are frozen.
    for (const key of ownKeys(globalThis)) void globalThis[key];
    // These two set internal state of the engine, which freezing an object does not protect.
    for (const key of ['prepareStackTrace', 'stackTraceLimit']) {
      if (has(Error, key)) defineProperty(Error, key, { value: Error[key], writable: false, configurable: false });
    }
    const unnamed = [
      function* () {}, async () => {}, async function* () {}, (function* () {})(), (async function* () {})(),
      [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), /x/[Symbol.matchAll](''),
    ];
    const seen = new Set(everything ? [] : [globalThis]);
    const reached = [];
    const prototypes = new Set();
    const left = [...(everything ? [globalThis] : known.map((key) => globalThis[key])), ...unnamed];
    while (left.length > 0) {
      const object = left.pop();
      if (!isObject(object) || seen.has(object)) continue;
      seen.add(object);
      reached.push(object);
      const above = getPrototypeOf(object);
      if (above !== null) prototypes.add(above);
      left.push(above);
      for (const key of ownKeys(object)) {
        const { value, get, set } = getOwnPropertyDescriptor(object, key);
        if (key === 'prototype' && isObject(value)) prototypes.add(value);
        left.push(value, get, set);
      }
    }
    for (const prototype of prototypes) prepare(prototype);
    for (const prototype of prototypes) {
      for (const key of ownKeys(prototype)) {
        const { get, set } = getOwnPropertyDescriptor(prototype, key);
        for (const accessor of [get, set]) {
          if (accessor === undefined || seen.has(accessor)) continue;
          if (isObject(accessor.prototype)) freeze(accessor.prototype);
          freeze(accessor);
        }
      }
    }
    for (const object of reached) freeze(object);
    if (everything) return;
    for (const key of known) {
      const now = getOwnPropertyDescriptor(globalThis, key);
      if (now?.configurable && 'value' in now) defineProperty(globalThis, key, { writable: false, configurable: false });
    }
  };
})
