// The class `AITestRunner` of @isdk/ai-test-runner on this package: the same fixtures, options, results and events.
//
// Differences from that package, each because a verdict was wrong there, are listed in
// docs/coming-from-ai-test-runner.md.
import { ExpectationError, compile, hasWeight, init, render } from "./index.js";

const REASONS = ["thinking", "reasonings", "reasoning", "reasons", "reason", "explanations", "explanation"];
const TOOL_TESTER = "toolTester";

const isGiven = (value) => value !== undefined && value !== null;
const isMap = (value) => isGiven(value) && Object.getPrototypeOf(value) === Object.prototype;
const first = (...values) => values.find(isGiven);

export class AITestRunner {
  #executor;
  #listeners = new Map();

  constructor(executor) {
    if (typeof executor?.execute !== "function") throw new TypeError("the executor needs a method `execute`");
    this.#executor = executor;
  }

  on(event, listener) {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  once(event, listener) {
    const only = (...given) => {
      this.off(event, only);
      listener(...given);
    };
    return this.on(event, only);
  }

  off(event, listener) {
    this.#listeners.set(event, (this.#listeners.get(event) ?? []).filter((known) => known !== listener));
    return this;
  }

  emit(event, ...given) {
    const listeners = this.#listeners.get(event) ?? [];
    for (const listener of listeners) listener(...given);
    return listeners.length > 0;
  }

  /** Runs the fixtures one after another. */
  async run(script, fixtures, options = {}) {
    const began = performance.now();
    // An engine that cannot be loaded is not a failure of each fixture.
    await init();
    const own = await operatorsOf(options.operators, options.baseDir);
    const hasOnly = fixtures.some((fixture) => fixture.only);
    const logs = [];
    const counts = { passedCount: 0, failedCount: 0, skippedCount: 0 };
    for (const [i, fixture] of fixtures.entries()) {
      const log = (hasOnly && !fixture.only) || options.skips?.[i] || fixture.skip
        ? { ...titled(fixture), passed: false, skipped: true, i, duration: 0 }
        : await this.#run(script, fixture, i, options, own);
      const event = log.skipped ? "skip" : log.error ? "error" : log.passed ? "pass" : "fail";
      counts[event === "pass" ? "passedCount" : event === "skip" ? "skippedCount" : "failedCount"] += 1;
      logs.push(log);
      this.emit(`test:${event}`, log);
    }
    return { ...counts, logs, duration: performance.now() - began };
  }

  async #run(script, fixture, i, options, operators) {
    const began = performance.now();
    let shown = {};
    try {
      const test = await Fixture.read(script, fixture, i, options, operators);
      shown = { input: test.input, expected: test.parts.find(({ about }) => about !== "schema")?.expected };
      const checks = await test.compiled();
      try {
        this.emit("test:start", { i, script: test.script, input: test.input });
        const asked = { script: test.script, args: test.args, options: { ...options.userConfig } };
        const result = await this.#executor.execute(asked);
        if (!isGiven(result)) throw new Error("the executor returned nothing");
        const found = [];
        for (const check of checks) found.push(await check.judge(check.part.about === "result" ? result : result.output));
        return { ...test.log(found, result, options), i, duration: performance.now() - began };
      } finally {
        checks.forEach((check) => check.release());
      }
    } catch (error) {
      return { ...titled(fixture), passed: false, ...shown, actual: undefined, error, i, duration: performance.now() - began };
    }
  }
}

/** A fixture with its defaults and templates filled in. */
class Fixture {
  static async read(script, fixture, i, options, operators) {
    const test = new Fixture();
    const config = options.fixtureConfig ?? {};
    const user = options.userConfig ?? {};
    const own = (key) => first(fixture[key], config[key]);
    const anywhere = (key) => first(fixture[key], config[key], options[key]);
    Object.assign(test, { fixture, config, options, own, anywhere });
    const input = isMap(fixture.input) && isMap(config.input)
      ? filled(fixture.input, config.input) : first(fixture.input, config.input);
    const variables = variablesOf(fixture, config, options, input);
    const layers = [variables, fixture, input === undefined ? {} : { input }];
    const at = { seed: i, now: Date.now() };
    const resolve = (value) => render(value, layers, at);
    test.args = await resolve(variables);
    const rendered = await resolve(input);
    test.input = isMap(rendered) ? Object.fromEntries(Object.entries(rendered).filter(([, value]) => isGiven(value))) : rendered;
    const named = (await resolve(fixture.script || config.script || undefined)) ?? script;
    const tools = toolsOf(await resolve(own("tools")), named);
    if (tools !== undefined) test.args.tools = tools;
    test.tools = tools ?? own("tools");
    test.script = tools === undefined ? named : (await resolve(own("toolTester"))) || TOOL_TESTER;
    const format = own("templateFormat");
    const expected = (value) => (format === undefined ? resolve(value) : render(value, layers, { ...at, format }));
    test.parts = await test.#parts(user, resolve, expected);
    test.scoring = await test.#scoring();
    const replaced = fixture.operators ? await operatorsOf(fixture.operators, options.baseDir)
      : await operatorsOf(config.operators, options.baseDir);
    test.operators = { ...operators, ...replaced };
    return test;
  }

  /** Returns the parts that are checked. */
  async #parts(user, resolve, expected) {
    const { fixture, config, options } = this;
    const parts = [];
    const schemas = [fixture.outputSchema, config.outputSchema, options.scriptConfig?.output].filter(isGiven);
    if (schemas.length > 0 && first(user.checkSchema, this.own("checkSchema")) !== false) {
      parts.push({ key: "schema", about: "schema", expected: await resolve(schemas.reduce(filled)) });
    }
    let diff = isGiven(fixture.diff) || isGiven(config.diff) ? await expected(this.own("diff")) : undefined;
    let whole = await expected(fixture.expect || config.expect || undefined);
    if (isMap(whole) && "diff" in whole) {
      if (diff !== undefined) throw new Error("`diff` is given twice, next to `expect` and inside it");
      ({ diff, ...whole } = whole);
      if (Object.keys(whole).length === 0) whole = undefined;
    }
    const output = "output" in fixture && fixture.output !== undefined ? fixture.output : config.output;
    if (output === undefined && whole === undefined && parts.length === 0) {
      throw new Error("the fixture expects nothing: it has neither `expect` nor `output` nor `outputSchema`");
    }
    if (output !== undefined) parts.push({ key: "output", about: "value", expected: await expected(output), diff });
    if (whole !== undefined) parts.push({ key: "expect", about: "result", expected: whole, diff });
    return parts;
  }

  async #scoring() {
    const written = this.anywhere("scoring");
    const isOn = typeof written === "boolean" ? written
      : isGiven(written) && (await Promise.all(this.parts.map(({ expected }) => hasWeight(expected)))).some(Boolean);
    if (!isOn) return undefined;
    const maxScore = this.anywhere("maxScore") > 0 ? this.anywhere("maxScore") : 100;
    const passScore = this.anywhere("passScore") ?? maxScore;
    if (passScore > maxScore) throw new Error(`\`passScore\` is ${passScore}, but the maximum score is ${maxScore}`);
    return { maxScore, passScore };
  }

  async compiled() {
    const { fixture, options, own, anywhere, scoring, operators } = this;
    const rules = {
      not: own("not") === true && scoring === undefined,
      strict: first(own("strict"), options.userConfig?.strict, options.strict),
      disableHeuristicSchema: first(own("disableHeuristicSchema"), options.userConfig?.disableHeuristicSchema, options.disableHeuristicSchema),
      allowOperatorOverride: anywhere("allowOperatorOverride"),
      diffPermissive: first(own("diffPermissive"), isMap(this.input) ? this.input.diffPermissive : undefined),
      operators,
      data: { variables: plain(this.args), input: plain(this.input), fixture: plain(fixture) },
    };
    if (scoring !== undefined) {
      const unassigned = ["unassignedWeight", "totalUnassignedWeight"];
      const weight = first(...unassigned.map(own), ...unassigned.map((key) => options[key]));
      Object.assign(rules, { scoring: true, ...scoring, unassignedWeight: weight, autoConfidence: anywhere("autoConfidence") });
    }
    const checks = [];
    const problems = [];
    for (const part of this.parts) {
      try {
        const { about, diff } = part;
        const compiled = await compile(part.expected, withoutUndefined({ ...rules, about, diff }));
        checks.push({ part, judge: (actual) => compiled.judge(actual), release: () => compiled.release() });
      } catch (error) {
        if (!(error instanceof ExpectationError)) throw error;
        problems.push(...error.problems);
      }
    }
    if (problems.length > 0) {
      checks.forEach((check) => check.release());
      throw new ExpectationError(problems);
    }
    return checks;
  }

  /** Returns the log entry for the results of the parts. */
  log(found, result, { logVars }) {
    const { parts, scoring, fixture } = this;
    const isDenied = this.own("not") === true;
    const failures = found.flatMap(({ failures }) => failures);
    const failedCritical = failures.filter(({ critical, undecided }) => critical && !undecided).map(({ key }) => key);
    const log = { ...titled(fixture) };
    const open = failures.find(({ undecided }) => undecided);
    if (scoring === undefined) {
      if (open !== undefined && !found.some(({ pass }) => pass === false)) throw undecided(open);
      log.passed = found.every(({ pass }) => pass) !== isDenied;
    } else {
      const weight = scoring.maxScore / Math.max(parts.length, 1);
      const noise = 1e-9 * scoring.maxScore;
      const total = (part) => {
        const sum = found.reduce((sum, found) => sum + part(found) * weight, 0);
        return Math.abs(sum - scoring.maxScore) < noise ? scoring.maxScore : sum;
      };
      const score = total(({ score }) => score);
      const allows = (score) => score >= scoring.passScore - noise && failedCritical.length === 0;
      const isCriticalOpen = failures.some(({ critical, undecided }) => critical && undecided);
      if (allows(total(({ most }) => most)) && (isCriticalOpen || !allows(score))) throw undecided(open);
      const details = found.map(({ pass, score, details, failures }, at) => (
        { key: parts[at].key, score, weight, pass, details: shown(details), failures: shownFailures(failures) }));
      Object.assign(log, { passed: allows(score) !== isDenied, score, scoreDetails: details, ...scoring });
    }
    if (failedCritical.length > 0) log.failedCritical = failedCritical;
    const { output } = result;
    const whole = parts.find(({ key }) => key === "expect");
    const schema = parts.find(({ key }) => key === "schema");
    Object.assign(log, {
      input: this.input,
      actual: output,
      expected: (parts.find(({ key }) => key === "output") ?? whole ?? schema)?.expected,
      reason: isMap(output) ? output[REASONS.find((key) => key in output)] : undefined,
      expectedSchema: schema?.expected,
      not: this.own("not"),
      script: this.script,
      actualTrace: result.messages,
      expectedTrace: whole?.expected,
      tools: this.tools,
    });
    if (failures.length > 0) log.failures = shownFailures(failures);
    if (logVars === true || (logVars === "error" && !log.passed)) log.vars = this.args;
    return log;
  }
}

/** The error of a fixture whose result is unknown, because of what could not be decided. */
function undecided({ key, message }) {
  return new Error(`it cannot be decided whether the result matches: ${key === "" ? "" : `${key}: `}${message}`);
}

function titled({ title }) {
  return title === undefined ? {} : { title };
}

function shown(details = []) {
  return details.map(({ status, details, critical, ...detail }) => (
    { ...detail, pass: status === "met", ...(critical ? { critical } : {}), ...(details ? { details: shown(details) } : {}) }));
}

function shownFailures(failures) {
  return failures.map(({ critical, undecided, diff, ...failure }) => ({
    ...failure,
    ...(diff?.length > 0 ? { diff } : {}),
    ...(critical ? { critical } : {}),
    ...(undecided ? { undecided } : {}),
  }));
}

/** Adds to `over` what only `under` has, at every level of nested maps. */
function filled(over, under) {
  if (!isMap(over) || !isMap(under)) return over;
  const all = Object.entries(over).map(([key, value]) => [key, key in under ? filled(value, under[key]) : value]);
  return { ...under, ...Object.fromEntries(all) };
}

/** Returns the variables of templates and functions. Later ones replace earlier ones. */
function variablesOf(fixture, config, options, input) {
  const script = Object.entries(options.scriptConfig ?? {})
    .filter(([key, value]) => isGiven(value) && typeof value !== "function" && !key.startsWith("_"));
  const parts = isMap(input) || Array.isArray(input) ? Object.entries(input).filter(([, value]) => isGiven(value)) : [];
  const own = "input" in fixture ? { ...fixture, input: input ?? fixture.input } : fixture;
  const front = Object.fromEntries(Object.entries(config).filter(([key]) => key !== "operators"));
  return {
    ...Object.fromEntries(script), ...options.scriptConfig?.prompt, ...front, ...own,
    ...Object.fromEntries(parts), ...options.userConfig?.data,
  };
}

function toolsOf(written, script) {
  if (written === true) {
    if (/[\n\r{}]/.test(script) || script.length >= 256) {
      throw new Error("`tools: true` needs the name of a script, but `script` contains the text of one");
    }
    return [script];
  }
  if (Array.isArray(written)) return written.length > 0 ? written : undefined;
  return (typeof written === "string" && written !== "") || isMap(written) ? [written] : undefined;
}

/** Returns operators by their names with a `$`. References to modules are loaded. */
async function operatorsOf(written, baseDir) {
  if (!written) return {};
  const entries = Array.isArray(written) ? written.filter(Boolean).map((reference) => [inferred(reference), reference]) : Object.entries(written);
  const operators = {};
  for (const [name, reference] of entries) {
    const bare = name.replace(/^\$/, "");
    operators[`$${bare}`] = typeof reference === "function" ? reference : await loaded(reference, bare, baseDir);
  }
  return operators;
}

function inferred(reference) {
  if (typeof reference === "function") return reference.name || "op";
  const [path, name] = reference.replace(/^js:(\/\/)?/, "").split("#");
  if (name) return name;
  const file = path.split("/").at(-1).replace(/\.([cm]?[jt]s|[jt]sx)$/, "");
  return file.replace(/[-._ ]+(.)/g, (_, letter) => letter.toUpperCase());
}

async function loaded(reference, name, baseDir) {
  if (typeof reference !== "string") throw new Error(`the operator $${name} is neither a function nor the name of one`);
  const [path, exported] = reference.replace(/^js:(\/\/)?/, "").split("#");
  const module = await import(/* @vite-ignore */ await addressOf(path, baseDir));
  const found = exported ? module[exported]
    : typeof module.default === "function" ? module.default : module[name] ?? module.default;
  if (typeof found !== "function") throw new Error(`the operator $${name} at \`${reference}\` is not a function`);
  return found;
}

/** Returns what `import` loads: relative paths begin at `baseDir`, and packages are those that it has. */
async function addressOf(path, baseDir) {
  if (/^[a-z][a-z+.-]+:/.test(path)) return path;
  if (typeof process === "undefined" || !process.versions?.node) {
    return /^\.{0,2}\//.test(path) ? new URL(path, baseDir ? `${baseDir}/` : document.baseURI).href : path;
  }
  const { pathToFileURL } = await import(/* @vite-ignore */ "node:url");
  const base = pathToFileURL(`${baseDir ?? process.cwd()}/`);
  if (/^\.{0,2}\//.test(path)) return new URL(path, base).href;
  const { createRequire } = await import(/* @vite-ignore */ "node:module");
  try {
    return pathToFileURL(createRequire(new URL("module.js", base)).resolve(path)).href;
  } catch {
    return path;
  }
}

/** Returns a copy without functions. */
function plain(value) {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value, (_, value) => (value instanceof RegExp ? String(value) : value)) ?? "null");
}

function withoutUndefined(map) {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined));
}
