// Two trials side by side, aligned at their first difference.

/** Maximum product of the two numbers of steps for aligning them after the first difference. */
const ALIGNED = 1_000_000;

/**
 * Returns the steps of a timeline as a flat list, each with a string that is equal for equal steps. A sub-agent's steps
 * follow the call that started it.
 */
function steps(timeline) {
  return timeline.flatMap((item) => {
    if (item.kind === 'message') return [{ item, same: `message ${item.text}`, label: 'User' }];
    if (item.kind !== 'turn') return [];
    const label = `Turn ${item.number + 1}${item.isSub ? ', sub-agent' : ''}`;
    return item.parts.filter((part) => part.kind !== 'thinking').flatMap((part) => {
      if (part.kind !== 'call') return [{ part, same: `${part.kind} ${JSON.stringify(part.text ?? part.question.question)}`, label }];
      const same = `call ${JSON.stringify([part.call.name, part.call.input])}`;
      return [{ part: { ...part, children: [] }, same, label }, ...steps(part.children)];
    });
  });
}

/** Returns pairs of steps: equal up to the first difference; after it, as many equal pairs as possible. */
function aligned(left, right) {
  const rows = [];
  let i = 0, j = 0;
  while (i < left.length && j < right.length && left[i].same === right[j].same) rows.push([left[i++], right[j++]]);
  const [n, m] = [left.length - i, right.length - j];
  if (n * m > ALIGNED) {
    for (; i < left.length || j < right.length; i += 1, j += 1) rows.push([left[i], right[j]]);
    return rows;
  }
  // Lengths of the longest common sequences of the remaining steps.
  const common = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
  for (let a = n - 1; a >= 0; a -= 1) {
    for (let b = m - 1; b >= 0; b -= 1) {
      common[a][b] = left[i + a].same === right[j + b].same ? common[a + 1][b + 1] + 1 : Math.max(common[a + 1][b], common[a][b + 1]);
    }
  }
  let a = 0, b = 0;
  while (a < n || b < m) {
    if (a < n && b < m && (left[i + a].same === right[j + b].same || common[a + 1][b + 1] === common[a][b])) rows.push([left[i + a++], right[j + b++]]);
    else if (b === m || (a < n && common[a + 1][b] >= common[a][b + 1])) rows.push([left[i + a++], undefined]);
    else rows.push([undefined, right[j + b++]]);
  }
  return rows;
}

async function comparePage(a, b) {
  const transcripts = await Promise.all([load(a), load(b)]);
  const pair = [a, b];
  const records = transcripts.map((transcript) => transcript.trial);
  const timelines = transcripts.map((transcript) => items(transcript, attempts(transcript).at(-1) ?? 1));
  const sequences = timelines.map(steps);
  const rows = aligned(...sequences);
  const isSame = ([one, other]) => one?.same === other?.same;
  const apart = rows.findIndex((row) => !isSame(row));
  const context = { findings: [], open: false };
  // On a phone, a step that both trials have is shown once.
  const cell = (step, side, isBoth) => h('div', { class: step ? 'cell' : 'cell absent' }, step
    ? [h('span', { class: 'label' }, step.label, h('span', { class: 'narrow' }, isBoth ? ', both' : `, ${armName(pair[side])}`)),
      step.item ? folded(step.item.text, 'said') : drawPart(step.part, context)]
    : h('p', { class: 'muted' }, '–'));
  const divider = h('h3', { class: 'apart', tabindex: '-1', id: 'apart', 'data-stop': true },
    apart < 0 ? `The same ${counted(rows.length, 'step')} in both` : `First difference: step ${apart + 1}`);
  const drawn = rows.slice(0, 2000).map((row, at) => [
    at === apart && divider, h('div', { class: `pair${isSame(row) ? ' same' : ''}` }, row.map((step, side) => cell(step, side, isSame(row)))),
  ]);
  return [
    h('nav', { class: 'crumbs', 'aria-label': 'Trials' }, back(),
      apart >= 0 && h('button', { onclick: () => jump('apart') }, 'Go to the first difference'),
      h('a', { href: comparison(b, a) }, 'swap sides')),
    h('h1', { tabindex: '-1' }, a.case === b.case ? `${caseName(a)}, side by side` : 'Two trials side by side'),
    h('div', { class: 'pair head' }, pair.map((trial) => h('div', {}, h('a', { href: link(trial) }, armName(trial)), ' ', outcome(trial),
      trial.reason && h('p', { class: 'reason' }, marked(trial.reason))))),
    section('Figures', figures(pair, records, sequences)),
    section('Checks', checksOf(pair, records)),
    section('Steps', h('div', { class: 'timeline' }, drawn, apart < 0 && divider)),
  ];
}

function figures(pair, records, sequences) {
  const calls = sequences.map((sequence) => sequence.filter((step) => step.part?.kind === 'call').length);
  const row = (name, values, format, sign = format) => {
    const difference = values.some((value) => value === null) ? null : values[0] - values[1];
    return h('tr', {}, h('th', { scope: 'row' }, name), values.map((value) => h('td', { class: 'number' }, known(value, format))),
      h('td', { class: 'number' }, known(difference, (value) => signed(value, sign))));
  };
  return table([words('Measure'), ...pair.map((trial) => numbers(armName(trial))), numbers('Difference')], [
    row('Checks met', pair.map((trial) => trial.checks[0]), number),
    row('Turns', records.map((record) => record.turn_count), number),
    row('Tool calls', calls, number),
    row('Agent time', pair.map((trial) => trial.ms), time),
    row('Tokens', pair.map((trial) => trial.tokens), number),
    row('Cost', pair.map((trial) => trial.cost), money),
  ], 'Figures');
}

/** Draws the checks of both trials, those with different results first. */
function checksOf(pair, records) {
  const [left, right] = records.map((record) => new Map(record.findings.map((finding) => [finding.id, finding])));
  const rows = [...new Set([...left.keys(), ...right.keys()])].map((id) => ({ id, a: left.get(id), b: right.get(id) }));
  const isSame = ({ a, b }) => a?.status === b?.status;
  const shown = rows.filter(({ a, b }) => !((a ?? b).implicit && isSame({ a, b }))).sort((a, b) => isSame(a) - isSame(b));
  const cell = (finding, side) => h('td', { class: finding && (pair[side].baseline ? 'baseline' : finding.status) }, finding
    ? [h('span', { class: 'sign' }, STATUS[finding.status]), ` ${finding.status}`, finding.status !== 'met' && [': ', marked(line(finding.because, 300))]]
    : 'not checked');
  return shown.length > 0 && table([words('Check'), ...pair.map((trial) => words(armName(trial)))], shown.map((each) => h('tr',
    { class: isSame(each) ? 'muted' : null }, h('th', { scope: 'row' }, (each.a ?? each.b).title ?? each.id), cell(each.a, 0), cell(each.b, 1))), 'Checks');
}
