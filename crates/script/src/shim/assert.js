import { inspect, isDeepEqual, isDeepStrictEqual } from 'internal:compare';

export class AssertionError extends Error {
  constructor({ message, actual, expected, operator }) {
    super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
    this.name = 'AssertionError';
    this.code = 'ERR_ASSERTION';
    this.generatedMessage = message === undefined;
    Object.assign(this, { actual, expected, operator });
  }
}

const check = (passed, actual, expected, message, operator, words) => {
  if (passed) return;
  if (message instanceof Error) throw message;
  const said = message ?? `Expected ${inspect(actual)} ${words} ${inspect(expected)}`;
  throw new AssertionError({ message: said, actual, expected, operator });
};
export function ok(value, message) {
  check(value, value, true, message ?? `${inspect(value)} is not truthy`, '==', '');
}
export function fail(message = 'Failed') {
  check(false, undefined, undefined, message, 'fail', '');
}
export const equal = (a, b, message) => check(a == b || (a !== a && b !== b), a, b, message, '==', 'to equal');
export const notEqual = (a, b, message) => check(a != b, a, b, message, '!=', 'not to equal');
export const strictEqual = (a, b, message) => check(Object.is(a, b), a, b, message, 'strictEqual', 'to be');
export const notStrictEqual = (a, b, message) => check(!Object.is(a, b), a, b, message, 'notStrictEqual', 'not to be');
export const deepEqual = (a, b, message) => check(isDeepEqual(a, b), a, b, message, 'deepEqual', 'to deeply equal');
export const notDeepEqual = (a, b, message) =>
  check(!isDeepEqual(a, b), a, b, message, 'notDeepEqual', 'not to deeply equal');
export const deepStrictEqual = (a, b, message) =>
  check(isDeepStrictEqual(a, b), a, b, message, 'deepStrictEqual', 'to deeply equal');
export const notDeepStrictEqual = (a, b, message) =>
  check(!isDeepStrictEqual(a, b), a, b, message, 'notDeepStrictEqual', 'not to deeply equal');
export const match = (text, pattern, message) => check(pattern.test(text), text, pattern, message, 'match', 'to match');
export const doesNotMatch = (text, pattern, message) =>
  check(!pattern.test(text), text, pattern, message, 'doesNotMatch', 'not to match');
export function ifError(value) {
  if (value !== null && value !== undefined) throw value;
}

const fits = (error, expected) => {
  if (expected === undefined || typeof expected === 'string') return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === 'function') {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    return !Error.isPrototypeOf(expected) && expected !== Error && expected(error) === true;
  }
  return Object.keys(expected).every((key) =>
    expected[key] instanceof RegExp && typeof error?.[key] === 'string'
      ? expected[key].test(error[key])
      : isDeepStrictEqual(error?.[key], expected[key]),
  );
};
const judge = (error, expected, message, operator) => {
  if (fits(error, expected)) return;
  check(false, error, expected, message, operator, 'to fit');
};
const missing = (message, what, operator) =>
  check(false, undefined, undefined, message ?? `Missing expected ${what}`, operator, '');
const said = (expected, message) => message ?? (typeof expected === 'string' ? expected : undefined);
export function throws(call, expected, message) {
  let error;
  try {
    call();
  } catch (caught) {
    error = { caught };
  }
  if (error === undefined) missing(said(expected, message), 'exception', 'throws');
  else judge(error.caught, expected, message, 'throws');
}
export function doesNotThrow(call, message) {
  try {
    call();
  } catch (error) {
    fail(said(message) ?? `Got an unwanted exception: ${error?.message ?? inspect(error)}`);
  }
}
export async function rejects(promise, expected, message) {
  let error;
  try {
    await (typeof promise === 'function' ? promise() : promise);
  } catch (caught) {
    error = { caught };
  }
  if (error === undefined) missing(said(expected, message), 'rejection', 'rejects');
  else judge(error.caught, expected, message, 'rejects');
}
export async function doesNotReject(promise, message) {
  try {
    await (typeof promise === 'function' ? promise() : promise);
  } catch (error) {
    fail(said(message) ?? `Got an unwanted rejection: ${error?.message ?? inspect(error)}`);
  }
}

const assert = Object.assign((value, message) => ok(value, message), {
  AssertionError, ok, fail, equal, notEqual, strictEqual, notStrictEqual, deepEqual, notDeepEqual, deepStrictEqual,
  notDeepStrictEqual, match, doesNotMatch, ifError, throws, doesNotThrow, rejects, doesNotReject,
});
export const strict = Object.assign((value, message) => ok(value, message), assert, {
  equal: strictEqual,
  notEqual: notStrictEqual,
  deepEqual: deepStrictEqual,
  notDeepEqual: notDeepStrictEqual,
});
strict.strict = strict;
assert.strict = strict;
export default assert;
