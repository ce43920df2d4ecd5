// A reporter for vitest that shows the trials of each test, with their findings: `reporters: ["default", "trialrun/vitest-reporter"]`.
import { relative } from "node:path";

const MARKS = { met: "✓", unmet: "✗", undecided: "?" };

/** Maximum number of trials of a run that are shown with their findings. */
const MAX_TRIALS = 5;

/** Prints the runs that the tests of `trialrun/vitest` have recorded. */
export default class TrialsReporter {
  #print;

  constructor({ print = (text) => process.stdout.write(`${text}\n`) } = {}) {
    this.#print = print;
  }

  onTestCaseResult(test) {
    for (const run of test.meta().trialrun ?? []) {
      this.#print(describe(run, `${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}`));
    }
  }
}

function describe({ id, passed, stoppedBy, trials }, title) {
  const lines = [`trialrun: ${title}: ${counts(trials)} (run ${id})`];
  const shown = passed ? [] : trials.filter(({ outcome, quarantined }) => outcome !== "passed" && !quarantined);
  for (const trial of shown.slice(0, MAX_TRIALS)) {
    const reason = trial.because && trial.findings.length === 0 ? `: ${trial.because}` : "";
    lines.push(`  ${trial.id} ${trial.outcome}${reason}`);
    for (const finding of trial.findings) lines.push(...findingLines(finding));
  }
  if (shown.length > MAX_TRIALS) lines.push(`  and ${shown.length - MAX_TRIALS} more: trialrun status ${id} --all`);
  if (stoppedBy) lines.push(`  the run was stopped: ${stoppedBy}`);
  return lines.join("\n");
}

function counts(trials) {
  const by = new Map();
  for (const { outcome, flaky } of trials) {
    const kind = flaky ? "flaky" : outcome;
    by.set(kind, (by.get(kind) ?? 0) + 1);
  }
  const total = `${trials.length} trial${trials.length === 1 ? "" : "s"}`;
  const parts = [...by].map(([kind, count]) => (by.size === 1 ? kind : `${count} ${kind}`));
  return parts.length ? `${total} ${parts.join(", ")}` : "no trials";
}

function findingLines({ status, id, because, source }) {
  const lines = [`    ${MARKS[status]} ${id}: ${because}`];
  if (status !== "met" && source) lines.push(`      ${source.file}:${source.line}: ${source.text.trim()}`);
  return lines;
}
