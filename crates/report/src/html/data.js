// The index, and the chunks of trials.

let index, trials, byId;

/** True if some names of trials need their arm, their repetition or their suite. */
let hasArms, hasRepetitions, hasSuites;

/** Sets the index, which a server sends again during the run. */
function takeIndex(next) {
  index = next;
  trials = index.trials.map((trial, at) => ({ ...trial, at }));
  byId = new Map(trials.map((trial) => [trial.id, trial]));
  const groups = new Map();
  for (const trial of trials) {
    const key = `${trial.suite}::${trial.case}`;
    if (!groups.has(key)) groups.set(key, trial.at);
    trial.group = groups.get(key);
  }
  const all = [...trials, ...running()];
  hasArms = new Set(all.map((trial) => trial.arm)).size > 1;
  hasRepetitions = all.some((trial) => trial.repetition > 1);
  hasSuites = new Set(all.map((trial) => trial.suite)).size > 1;
}

/** Returns the trials that have started but have no outcome. A report in a file has none. */
function running() {
  return (index.live?.running ?? []).filter((trial) => !byId.has(trial.id));
}

/** Outcomes: their sign, and their position in lists that show failures first. */
const OUTCOMES = {
  failed: { sign: '✗', rank: 0 },
  broken: { sign: '!', rank: 1 },
  stale: { sign: '~', rank: 1 },
  undecided: { sign: '?', rank: 2 },
  cancelled: { sign: '■', rank: 3 },
  skipped: { sign: '–', rank: 4 },
  passed: { sign: '✓', rank: 6 },
  running: { sign: '▸', rank: 5 },
};

/** Position of a quarantined trial that did not pass: after the run's failures. */
const QUARANTINED = 5;

/** A trial without the skill never counts as a failure, so it comes after those that do. */
function rank(trial) {
  const quarantined = trial.quarantined && trial.outcome !== 'passed';
  const own = (quarantined ? QUARANTINED : OUTCOMES[trial.outcome].rank) + (trial.baseline ? 10 : 0);
  return trial.flaky ? own - 0.5 : own;
}

const parsed = new Promise((resolve) => {
  if (document.readyState === 'loading') addEventListener('DOMContentLoaded', resolve);
  else resolve();
});

/** The last opened transcripts, kept so that going back and forth is quick. */
const opened = new Map();

/** Returns the compressed transcript of a trial: from the server, or from the end of the file. */
async function compressed(trial) {
  if (index.live) return fetchTranscript(trial);
  await parsed;
  const base64 = document.getElementById(`t${trial.at}`).textContent;
  return new Blob([Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))]);
}

/** Inflates the transcript of a trial. Without an outcome, the transcript is still growing. */
async function load(trial) {
  const key = `${trial.id}\n${trial.outcome ? '' : JSON.stringify(trial)}`;
  if (opened.has(key)) return opened.get(key);
  const stream = (await compressed(trial)).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const text = await new Response(stream).text();
  const transcript = JSON.parse(text, /\d{16}/.test(text) ? exact : undefined);
  opened.set(key, transcript);
  if (opened.size > 8) opened.delete(opened.keys().next().value);
  return transcript;
}

/** Keeps whole numbers that a JavaScript number cannot hold, such as ids of 64 bits, as they are written. */
function exact(key, value, context) {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

/** Returns the other trials of the same case, by arm and repetition. */
function siblings(trial) {
  return trials.filter((other) => other.suite === trial.suite && other.case === trial.case && other !== trial)
    .sort((a, b) => a.arm.localeCompare(b.arm) || a.repetition - b.repetition);
}

/** Returns the location of a case in its file, such as `tests/a.yaml:12`. */
function place(trial) {
  return trial.file ? trial.file + (trial.line ? `:${trial.line}` : '') : '';
}

/** Returns the name of a trial without the parts that are the same for all. */
function caseName(trial) {
  return (hasSuites ? `${trial.suite}::` : '') + trial.case;
}

/** Returns what distinguishes a trial from others with the same case. */
function armName(trial) {
  const parts = [(hasArms || !hasRepetitions) && trial.arm, hasRepetitions && `#${trial.repetition}`];
  return parts.filter(Boolean).join(' ');
}

function link(trial) {
  return `#/trial/${encodeURIComponent(trial.id)}`;
}

function comparison(a, b) {
  return `#/compare/${encodeURIComponent(a.id)}/${encodeURIComponent(b.id)}`;
}

function outcome(trial, text = true) {
  const status = trial.outcome ?? 'running';
  const name = (trial.baseline ? 'baseline, ' : '') + status + (trial.flaky ? ', flaky' : '') + (trial.quarantined ? ', quarantined' : '');
  // A trial without the skill serves for comparison; its failure is not a failure of the run.
  const sign = trial.baseline && status !== 'passed' && status !== 'running' ? '○' : OUTCOMES[status].sign;
  const kind = trial.baseline || trial.quarantined ? 'baseline' : status;
  const title = name + (trial.baseline ? ': without the skill, for comparison only' : '');
  return h('span', { class: `outcome ${kind}`, title: text ? null : title },
    h('span', { class: 'sign', 'aria-hidden': 'true' }, sign),
    h('span', { class: text ? null : 'unseen' }, ` ${name}`));
}

function checks([met, unmet, open]) {
  const all = met + unmet + open;
  return all === 0 ? 'none' : `${met} of ${all}`;
}

takeIndex(JSON.parse(document.getElementById('index').textContent));
