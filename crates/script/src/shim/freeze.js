// Returns a function that makes unchangeable what a script can reach without a module, so that none can leave anything
// behind for the next one: `everything` that is there when it is called, or else what is there now. Global variables that
// are made in between can be changed then, and so can what they hold.
((everything) => {
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, freeze } = Object;
  const { ownKeys } = Reflect;
  const { isPrototypeOf } = Object.prototype;
  const has = Object.hasOwn;
  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  // What is made when it is first looked at must be there before nothing can be added.
  for (const key of ownKeys(globalThis)) void globalThis[key];
  // An object cannot be assigned what it inherits as a read-only property. As an accessor it can: the object then gets
  // a property of its own, as it does where nothing is frozen.
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
  // Reading a method through an accessor takes longer, so the methods of lists, texts and the like stay as they are.
  const COMMON = ['constructor', 'toString', 'toLocaleString', 'valueOf', 'toJSON', 'name', 'message'];
  const isError = (object) => object === Error.prototype || isPrototypeOf.call(Error.prototype, object);
  const prepare = (prototype) => {
    const all = prototype === Object.prototype || isError(prototype);
    for (const key of all ? ownKeys(prototype) : COMMON) {
      if (has(prototype, key) && 'value' in getOwnPropertyDescriptor(prototype, key)) replaceable(prototype, key);
    }
  };
  const unnamed = [
    function* () {}, async () => {}, async function* () {}, (function* () {})(), (async function* () {})(),
    [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), /x/[Symbol.matchAll](''),
  ];
  const seen = new Set();
  const prototypes = new Set();
  const reach = () => {
    const left = [globalThis, ...unnamed];
    while (left.length > 0) {
      const object = left.pop();
      if (!isObject(object) || seen.has(object)) continue;
      seen.add(object);
      const above = getPrototypeOf(object);
      if (above !== null) prototypes.add(above);
      left.push(above);
      for (const key of ownKeys(object)) {
        const { value, get, set } = getOwnPropertyDescriptor(object, key);
        if (key === 'prototype' && isObject(value)) prototypes.add(value);
        left.push(value, get, set);
      }
    }
  };
  const globals = everything ? [] : ownKeys(globalThis).map((key) => [key, globalThis[key]]);
  if (!everything) reach();
  return () => {
    if (everything) reach();
    // These two set what the engine itself remembers, which no freezing of an object reaches.
    for (const key of ['prepareStackTrace', 'stackTraceLimit']) {
      if (has(Error, key)) defineProperty(Error, key, { value: Error[key], writable: false, configurable: false });
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
    for (const object of seen) {
      if (everything || object !== globalThis) freeze(object);
    }
    for (const [key, value] of globals) {
      const now = getOwnPropertyDescriptor(globalThis, key);
      if (now?.configurable && now.value === value) defineProperty(globalThis, key, { value, writable: false, configurable: false });
    }
  };
})
