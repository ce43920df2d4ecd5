/** 0 to 1 is a confidence, text is a failure and says why. */
export async function checkCode(actual, expected, fixture) {
  if (actual.includes("eval")) return "eval is not allowed";
  return actual.includes(expected.keyword) ? 1.0 : 0.0;
}

/** What stands beside `$value` is in `$options`. */
export function checkOptions(actual, expected, fixture) {
  const { timeout, strict } = fixture.$options;
  if (!strict) return `timeout ${timeout}, not strict`;
  return actual.startsWith(expected) || `no "${expected}" within ${timeout} ms`;
}

/** Asks for what other expectations would say. */
export async function firstLine(actual, expected, fixture) {
  const result = await fixture.$validate(actual.split("\n")[0], expected);
  return result.pass;
}
