// Matches and scores values: `expect`, operators, templates and diffs of trialrun, without the program.
import { ExpectationError, init } from "./engine.js";

export { ExpectationError, init };

/** A compiled expectation. */
export class Expectation {
  #engine;
  #id;
  #names;

  constructor(engine, id, names, warnings) {
    this.#engine = engine;
    this.#id = id;
    this.#names = names;
    /** Parts that look wrong, but may be intended. */
    this.warnings = warnings;
    released.register(this, { engine, id, names }, this);
  }

  /** Judges a value. */
  async judge(actual) {
    const given = actual === undefined ? {} : { actual: this.#engine.marked(actual) };
    const judge = () => this.#engine.request({ do: "judge", id: this.#id, ...given });
    const { pass, score, most, flaws, details } = await this.#engine.settled(judge);
    return { pass, score, most, failures: flaws, details };
  }

  /** Frees its memory. This happens by itself when it is no longer used. */
  release() {
    released.unregister(this);
    free({ engine: this.#engine, id: this.#id, names: this.#names });
  }
}

function free({ engine, id, names }) {
  engine.forget(names);
  engine.request({ do: "release", id });
}

const released = new FinalizationRegistry(free);

/** Options of `compile`, `match` and `expect`. */
const OPTIONS = [
  "about", "allowOperatorOverride", "autoConfidence", "data", "diff", "diffPermissive", "disableHeuristicSchema", "maxScore",
  "not", "operators", "passScore", "scoring", "strict", "unassignedWeight",
];

/** Compiles an expectation. Throws an `ExpectationError` if it cannot be used. */
export async function compile(expected, { about = "value", diff, data = {}, ...rules } = {}) {
  const unknown = Object.keys(rules).find((key) => !OPTIONS.includes(key));
  if (unknown !== undefined) throw new TypeError(`unknown option \`${unknown}\`; the options are ${OPTIONS.join(", ")}`);
  const engine = await init();
  const names = [];
  const operators = {};
  for (const [name, run] of Object.entries(rules.operators ?? {})) {
    if (typeof run !== "function") throw new TypeError(`the operator ${name} is not a function`);
    const own = engine.named(run);
    names.push(own);
    operators[name.startsWith("$") ? name : `$${name}`] = own;
  }
  const request = {
    do: "compile", about, expected: engine.marked(expected, names) ?? null, rules: { ...rules, operators },
    data: { variables: data.variables, input: data.input, fixture: data.fixture },
    ...(diff === undefined ? {} : { diff: engine.marked(diff, names) }),
  };
  const { id, problems } = engine.request(request);
  const errors = problems.filter(({ isError }) => isError);
  if (errors.length > 0) {
    free({ engine, id, names });
    throw new ExpectationError(errors);
  }
  return new Expectation(engine, id, names, problems);
}

/** Matches `actual` with `expected`. `pass` is `null` if it cannot be decided. */
export async function match(actual, expected, options) {
  const compiled = await compile(expected, options);
  try {
    return await compiled.judge(actual);
  } finally {
    compiled.release();
  }
}

/** `await expect(answer).matches({ name: "/^A/" })` throws an error with all mismatches. */
export function expect(actual, options) {
  const check = async (expected, wanted, more) => {
    const found = await match(actual, expected, { ...options, ...more });
    if (found.pass === wanted) return found;
    const error = new Error(found.pass === !wanted && !wanted ? "the value matches, but should not" : described(found));
    throw Object.assign(error, { name: "AssertionError", actual, expected, failures: found.failures });
  };
  return {
    matches: (expected, more) => check(expected, true, more),
    not: { matches: (expected, more) => check(expected, false, more) },
  };
}

function described({ pass, failures }) {
  const first = pass === null ? "it cannot be decided whether the value matches" : "the value does not match";
  const line = ({ key, message }) => `  ${key === "" ? "" : `${key}: `}${message ?? "does not match"}`;
  return [first, ...failures.map(line)].join("\n");
}

/**
 * Resolves the `{{ }}` templates in `value`. Of `layers`, maps of variables, later ones take precedence. Throws an
 * `ExpectationError` if a template cannot be resolved.
 */
export async function render(value, variables = {}, { format, now = Date.now(), seed = 0 } = {}) {
  if (value === undefined || (format === undefined && !mayBeTemplate(value))) return value;
  const engine = await init();
  const layers = Array.isArray(variables) ? variables : [variables];
  const names = [];
  try {
    const marked = layers.map((layer) => engine.marked(layer, names));
    const offset = -new Date(now).getTimezoneOffset();
    const request = { do: "render", value: engine.marked(value, names) ?? null, layers: marked, now, offset, seed };
    const rendered = engine.request(format === undefined ? request : { ...request, format });
    const errors = rendered.problems.filter(({ isError }) => isError);
    if (errors.length > 0) throw new ExpectationError(errors);
    return engine.unmarked(rendered.value);
  } finally {
    engine.forget(names);
  }
}

/** Returns `true` if a string or a key in `value` may be a template. Most values have none, and nothing to resolve. */
function mayBeTemplate(value) {
  if (typeof value === "string") return value.includes("{{") || value.includes("{%");
  if (value instanceof RegExp) return mayBeTemplate(value.source);
  if (value === null || typeof value !== "object") return false;
  return Object.entries(value).some(([key, value]) => mayBeTemplate(key) || mayBeTemplate(value));
}

/** Compares two texts. `kind` is `auto`, `chars`, `words`, `wordsWithSpace`, `lines`, `sentences` or `json`. */
export async function diff(expected, actual, kind = "auto") {
  return (await init()).request({ do: "diff", expected, actual, kind }).value;
}

/** Returns `true` if `expected` contains a weight, so that `scoring: "auto"` scores it. */
export async function hasWeight(expected) {
  const engine = await init();
  return engine.request({ do: "wants_scoring", expected: engine.marked(expected, []) ?? null }).value;
}
