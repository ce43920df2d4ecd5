// Deep comparison of two values, and formatting of values.
const own = (value) => Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));

function equal(a, b, strict, seen) {
  if (strict ? Object.is(a, b) : a == b || (a !== a && b !== b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  const same = (left, right) => equal(left, right, strict, seen);
  if (a instanceof Date) {
    if (!Object.is(a.getTime(), b.getTime())) return false;
  } else if (a instanceof RegExp) {
    if (String(a) !== String(b) || a.lastIndex !== b.lastIndex) return false;
  } else if (a instanceof Error) {
    if (a.name !== b.name || a.message !== b.message) return false;
  } else if (a instanceof Number || a instanceof String || a instanceof Boolean) {
    if (!Object.is(a.valueOf(), b.valueOf())) return false;
  } else if (a instanceof Map) {
    if (a.size !== b.size) return false;
    const rest = [...b];
    for (const [key, value] of a) {
      const found = b.has(key)
        ? rest.findIndex(([other]) => other === key || (other !== other && key !== key))
        : rest.findIndex(([other, entry]) => same(key, other) && same(value, entry));
      if (found < 0 || !same(value, rest[found][1])) return false;
      rest.splice(found, 1);
    }
  } else if (a instanceof Set) {
    if (a.size !== b.size) return false;
    const rest = [...b].filter((value) => !a.has(value));
    for (const value of a) {
      if (b.has(value)) continue;
      const found = rest.findIndex((other) => same(value, other));
      if (found < 0) return false;
      rest.splice(found, 1);
    }
  } else if (a instanceof ArrayBuffer) {
    return same([...new Uint8Array(a)], [...new Uint8Array(b)]);
  }
  const keys = own(a);
  if (keys.length !== own(b).length) return false;
  return keys.every((key) => Object.prototype.hasOwnProperty.call(b, key) && same(a[key], b[key]));
}

export const isDeepStrictEqual = (a, b) => equal(a, b, true, new Map());
export const isDeepEqual = (a, b) => equal(a, b, false, new Map());
export const { inspect, format } = import.meta.value;
