import type { TestCase } from "vitest/node";

/** Prints the trials of each test, with their findings. */
export default class TrialsReporter {
  /** `print` gets each text; by default, it is written to stdout. */
  constructor(options?: { print?: (text: string) => void });
  onTestCaseResult(test: TestCase): void;
}
