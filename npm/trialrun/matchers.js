// Matchers for vitest and jest, which have the same interface.
"use strict";

const { Run, expect } = require("./index.js");

/** `await expect(value).toMatchExpectation({ name: "/^A/" })` */
async function toMatchExpectation(actual, expected, options) {
  const match = await expect(actual).match(expected, options);
  const message = () => match.passed === true
    ? "the value matches, but must not"
    : `${match.passed === false ? "the value does not match" : "it cannot be decided whether the value matches"}\n${match.text}`;
  // What cannot be decided passes neither way.
  return { pass: match.passed === null ? this.isNot : match.passed, message };
}

/** `await expect(run).toPassTrials()`, or `await expect(bot).toPassTrials({ prompt, expect, trials })`, which calls `trial` */
const toPassTrials = (trial) => async (actual, settings) => {
  const result = actual instanceof Run ? actual : await started(trial, actual, settings);
  return { pass: result.passed, message: () => (result.passed ? "the trials passed, but must not" : result.failure) };
};

async function started(trial, agent, settings) {
  if (settings === undefined || (typeof agent !== "function" && typeof agent?.answer !== "function")) {
    const given = typeof agent?.then === "function" ? ", not a promise: write `await` before it" : "";
    throw new TypeError(`\`toPassTrials\` needs a run, or an agent and \`{ prompt, expect }\`${given}`);
  }
  const { prompt, ...rest } = settings;
  return await trial(prompt, { ...rest, agent });
}

/** Returns the matchers, which run trials with `trial`. */
module.exports = (trial) => ({ toMatchExpectation, toPassTrials: toPassTrials(trial) });
