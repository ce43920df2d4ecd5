// Matchers and tests for jest: `require("trialrun/jest")` in a test or in a file of `setupFilesAfterEnv`.
"use strict";

const trialrun = require("./index.js");
const matchers = require("./matchers.js");

expect.extend(matchers(trialrun.trial));

/** Defines a test that runs trials: `describeTrial("refund", { prompt, agent, expect, trials })`. */
function describeTrial(name, { prompt, testTimeout = 600_000, ...settings }) {
  test(name, async () => {
    const run = await trialrun.trial(prompt, { name, ...settings });
    await expect(run).toPassTrials();
  }, testTimeout);
}

module.exports = { ...trialrun, describeTrial };
