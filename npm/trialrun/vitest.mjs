// Matchers and tests for vitest: `import "trialrun/vitest"` in a test or in a file of `setupFiles`.
import { expect, test } from "vitest";

import trialrun from "./index.js";
import { toMatchExpectation, toPassTrials } from "./matchers.js";

expect.extend({ toMatchExpectation, toPassTrials });

/** Defines a test that runs trials: `describeTrial("refund", { prompt, agent, expect, trials })`. */
export function describeTrial(name, { prompt, testTimeout = 600_000, ...settings }) {
  test(name, { timeout: testTimeout }, async ({ signal }) => {
    const run = await trialrun.trial(prompt, { name, signal, ...settings });
    await expect(run).toPassTrials();
  });
}

export * from "./index.js";
