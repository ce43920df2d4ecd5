// Makes everything that a script can reach without a module unchangeable, so that none can leave anything behind for
// the next one.
(() => {
  // What is made when it is first looked at must be there before nothing can be added.
  for (const key of Reflect.ownKeys(globalThis)) void globalThis[key];
  const unnamed = [
    function* () {}, async () => {}, async function* () {}, (function* () {})(), (async function* () {})(),
    [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(), /x/[Symbol.matchAll](''),
  ];
  const seen = new Set();
  const left = [globalThis, ...unnamed];
  while (left.length > 0) {
    const object = left.pop();
    if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object)) continue;
    seen.add(object);
    Object.freeze(object);
    left.push(Object.getPrototypeOf(object));
    for (const key of Reflect.ownKeys(object)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(object, key);
      left.push(value, get, set);
    }
  }
})
