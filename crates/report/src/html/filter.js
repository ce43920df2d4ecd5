// The filter: words, all of which must match. The filter's text is its only state, so links can contain it.

const KEYS = ['outcome', 'arm', 'tag', 'suite', 'case'];

/** Parses `word "two words" outcome:failed arm:"a b" -word tests/a.yaml:12`. */
function parse(text) {
  const words = [];
  for (const [, not, key, quoted, plain] of text.matchAll(/(-?)(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const value = quoted ?? plain;
    if (key === undefined || KEYS.includes(key)) words.push({ key, value: value.toLowerCase(), not: not === '-' });
    else words.push({ value: `${key}:${value}`.toLowerCase(), not: not === '-' });
  }
  return words;
}

/** Returns the words of a key, without negated ones. */
function chosen(text, key) {
  return parse(text).filter((word) => word.key === key && !word.not).map((word) => word.value);
}

/** Adds a word such as `outcome:failed` to the text, or removes it. */
function toggled(text, key, value) {
  const word = `${key}:${/\s/.test(value) ? `"${value}"` : value}`;
  const rest = text.match(/-?(?:[a-z]+:)?(?:"[^"]*"?|\S+)/g) ?? [];
  const without = rest.filter((other) => other.toLowerCase() !== word.toLowerCase());
  return (without.length < rest.length ? without : [...rest, word]).join(' ');
}

function values(trial, key) {
  switch (key) {
    // As in the run's counts, trials without the skill and quarantined trials are not among the outcomes.
    case 'outcome': return [trial.baseline ? 'baseline' : trial.quarantined ? 'quarantined' : trial.outcome, trial.flaky && 'flaky'];
    case 'tag': return (trial.tags ?? []).map((tag) => tag.toLowerCase());
    default: return [trial[key].toLowerCase()];
  }
}

function matches(trial, word) {
  if (word.key) return values(trial, word.key).includes(word.value);
  trial.text ??= [trial.id, trial.title, trial.reason, place(trial), ...(trial.tags ?? [])].join('\n').toLowerCase();
  const at = trial.text.indexOf(word.value);
  // `a.yaml:1` is not `a.yaml:12`.
  return at >= 0 && !(/:\d+$/.test(word.value) && /^\d/.test(trial.text.slice(at + word.value.length)));
}

/** Returns the trials that match. Several values of one key are alternatives. */
function filtered(text) {
  const words = parse(text);
  const plain = words.filter((word) => !word.key || word.not);
  const groups = KEYS.map((key) => words.filter((word) => word.key === key && !word.not)).filter((group) => group.length);
  return trials.filter((trial) => plain.every((word) => matches(trial, word) !== word.not)
    && groups.every((group) => group.some((word) => matches(trial, word))));
}

/** Orders of the list. */
const ORDERS = {
  // Repetitions of a case are adjacent.
  failures: (a, b) => rank(a) - rank(b) || a.group - b.group || a.arm.localeCompare(b.arm) || a.repetition - b.repetition,
  case: (a, b) => caseName(a).localeCompare(caseName(b)) || a.at - b.at,
  arm: (a, b) => a.arm.localeCompare(b.arm) || a.at - b.at,
  checks: (a, b) => (a.checks[0] / (a.checks[0] + a.checks[1] || 1)) - (b.checks[0] / (b.checks[0] + b.checks[1] || 1)),
  time: (a, b) => b.ms - a.ms,
  tokens: (a, b) => (b.tokens ?? -1) - (a.tokens ?? -1),
  cost: (a, b) => (b.cost ?? -1) - (a.cost ?? -1),
};

/** Returns the trials of a list, in its order. */
function listed({ filter, sort }) {
  return filtered(filter).sort(ORDERS[sort] ?? ORDERS.failures);
}
