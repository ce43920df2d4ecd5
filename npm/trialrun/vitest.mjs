// Matchers and tests for vitest: `import "trialrun/vitest"` in a test or in a file of `setupFiles`.
import * as vitest from "vitest";

import trialrun from "./index.js";
import matchers from "./matchers.js";

const { TestRunner, expect, test } = vitest;

// Vitest 3 has it only in `vitest/suite`, and Vitest 4 warns of that module.
const { getCurrentTest } = TestRunner ?? (await import("vitest/suite"));

/** Records the runs of a function with its test, for the reporter. */
function recorded(start) {
  return async (...given) => {
    // After the first `await`, another test may be the current one.
    const task = getCurrentTest();
    const run = await start(...given);
    if (task) (task.meta.trialrun ??= []).push(summary(run));
    return run;
  };
}

/** Runs tests and records the run. */
export const run = recorded(trialrun.run);

/** Runs one case that is written in JavaScript. */
export const trial = recorded(trialrun.trial);

expect.extend(matchers(trial));

/** Returns the parts of a run that the reporter shows. */
function summary({ id, passed, stopped_by: stoppedBy, trials }) {
  const finding = ({ id, status, because, source }) => ({ id, status, because, source });
  return {
    id, passed, stoppedBy,
    trials: trials.map(({ id, outcome, flaky, because, quarantine, findings }) => ({
      id, outcome, flaky, because, quarantined: quarantine !== undefined, findings: findings.map(finding),
    })),
  };
}

/** Defines a test that runs trials: `describeTrial("refund", { prompt, agent, expect, trials })`. */
export function describeTrial(name, { prompt, testTimeout = 600_000, ...settings }) {
  test(name, { timeout: testTimeout }, async ({ signal }) => {
    const run = await trial(prompt, { name, signal, ...settings });
    await expect(run).toPassTrials();
  });
}

export * from "./index.js";
