import "vitest";
import type { MatchSettings, TrialSettings } from "./index.js";

export * from "./index.js";

export interface DescribedTrial extends Omit<TrialSettings, "name"> {
  prompt: string | string[];
  /** Time limit of the test in milliseconds. Default: ten minutes. */
  testTimeout?: number;
}

/** Defines a test that runs trials. */
export function describeTrial(name: string, settings: DescribedTrial): void;

interface Matchers<R> {
  /** Matches the value with the `$operator` engine. */
  toMatchExpectation(expected: unknown, settings?: MatchSettings): Promise<R>;
  /** Passes if the run passed, or a run of this agent. */
  toPassTrials(settings?: Omit<TrialSettings, "agent"> & { prompt: string | string[] }): Promise<R>;
}

declare module "vitest" {
  interface Assertion<T = any> extends Matchers<void> {}
}
