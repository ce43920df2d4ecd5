import type { MatchSettings, TrialSettings } from "./index";

export * from "./index";

export interface DescribedTrial extends Omit<TrialSettings, "name"> {
  prompt: string | string[];
  /** Time limit of the test in milliseconds. Default: ten minutes. */
  testTimeout?: number;
}

/** Defines a test that runs trials. */
export function describeTrial(name: string, settings: DescribedTrial): void;

declare global {
  namespace jest {
    interface Matchers<R> {
      /** Matches the value with the `$operator` engine. */
      toMatchExpectation(expected: unknown, settings?: MatchSettings): Promise<R>;
      /** Passes if the run passed, or a run of this agent. */
      toPassTrials(settings?: Omit<TrialSettings, "agent"> & { prompt: string | string[] }): Promise<R>;
    }
  }
}
