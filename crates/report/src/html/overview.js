// The overview: the verdict, what did not pass, the figures of each arm, and the list of trials.

/** Number of rows that are added to the list at once. */
const ROWS = 500;

/** Maximum number of skills that are listed by name. */
const SKILLS = 10;

/** Maximum number of cases that are listed above the figures because they did not pass. */
const FAILURES = 20;

/** Maximum number of dots in a row. */
const DOTS = 40;

const COLUMNS = [
  { sort: 'failures', heading: 'Outcome' },
  { sort: 'case', heading: 'Case' },
  { sort: 'arm', heading: 'Arm' },
  { sort: 'checks', heading: 'Checks met', number: true },
  { sort: 'time', heading: 'Agent time', number: true },
  { sort: 'tokens', heading: 'Tokens', number: true },
  { sort: 'cost', heading: 'Cost', number: true },
];

/** Returns the overview, and sets what is drawn again when the index changes. */
function overview(route) {
  const summary = h('div', {}, summaryParts());
  const trialList = list(route);
  onIndex = () => redrawn(() => {
    replace(summary, summaryParts());
    trialList.update();
  });
  return [summary, trialList.section];
}

/** Draws everything above the list. */
function summaryParts() {
  const { run } = index;
  const facts = [
    date(run.started_at),
    run.shard,
    run.duration_ms !== null && time(run.duration_ms),
    run.tokens !== null && `${run.lacks_tokens ? 'at least ' : ''}${number(run.tokens)} tokens`,
    run.cost_usd !== null && (run.lacks_cost ? 'at least ' : '') + money(run.cost_usd),
    run.judge_cost_usd !== null && `${money(run.judge_cost_usd)} for judges`,
    ...run.agents.map((agent) => [agent.name, agent.version, agent.model].filter(Boolean).join(' ')),
    ...run.skills.slice(0, SKILLS).map((skill) => `skill ${skill.name}${skill.version ? ` ${skill.version}` : ''}`),
    run.skills.length > SKILLS && `${counted(run.skills.length - SKILLS, 'more skill')}`,
  ].filter(Boolean);
  return [
    h('h1', { tabindex: '-1' }, isActive()
      ? [h('span', { class: 'result RUNNING' }, 'RUNNING'), progress()]
      : [h('span', { class: `result ${run.result.replace(' ', '-')}` }, run.result), ' ', marked(run.because)]),
    !isActive() && index.live && !index.live.is_over && h('p', {}, 'This run was interrupted: its process is gone.'),
    index.verdicts.length > 0
      ? index.verdicts.map((sentence, at) => h('p', { class: 'verdict' }, at === 0 && isActive() && 'So far: ', sentence))
      : h('p', { class: 'verdict' }, 'No trial has finished yet'),
    (index.pass_rates ?? []).map((sentence) => h('p', {}, sentence)),
    h('p', { class: 'facts muted' }, facts.map((fact) => h('span', {}, fact))),
    section('Not passed', failures()),
    section(isActive() ? 'Running now' : 'Interrupted before an outcome', runningTable()),
    section(index.arms.length > 1 ? 'Arms' : 'Result', arms(), deltas()),
    section('Slowest and most expensive', extremes()),
  ];
}

/** Draws the cases with trials that count and did not pass, the most serious ones first. */
function failures() {
  const isOpen = (trial) => !trial.baseline && !trial.quarantined && !['passed', 'skipped'].includes(trial.outcome);
  const open = trials.filter(isOpen).sort(ORDERS.failures);
  const groups = [...Map.groupBy(open, (trial) => trial.group).values()];
  const left = groups.length - FAILURES;
  return [
    groups.length > 0 && h('div', { class: 'failures' }, groups.slice(0, FAILURES).map(([worst, ...others]) => {
      const all = trials.filter((trial) => trial.group === worst.group);
      const more = others.length > 0 && h('span', { class: 'muted' }, ` and ${number(others.length)} more`);
      return h('div', { class: `failure ${worst.outcome}` },
        h('p', {}, outcome(worst, false), ' ', h('a', { href: link(worst), 'data-stop': true }, caseName(worst)),
          all.length > 1 && [' ', h('span', { class: 'muted' }, armName(worst)), more],
          all.length > 1 && all.length <= DOTS && [' ', dots(all)]),
        worst.reason && h('p', { class: 'reason' }, marked(line(worst.reason, 400))),
        place(worst) && h('p', { class: 'place' }, place(worst)));
    })),
    left > 0 && h('p', { class: 'muted' }, `${counted(left, 'more case')} below`),
  ];
}

/** Draws a dot for each trial of a case, in the order of arms and repetitions. */
function dots(group) {
  const sorted = [...group].sort((a, b) => a.arm.localeCompare(b.arm) || a.repetition - b.repetition);
  const dot = (trial) => h('a', { href: link(trial), title: armName(trial) }, outcome(trial, false));
  return h('span', { class: 'dots' }, sorted.slice(0, DOTS).map(dot),
    sorted.length > DOTS && h('span', { class: 'muted' }, ` and ${number(sorted.length - DOTS)} more`));
}

function section(heading, ...content) {
  if (!content.flat().some(Boolean)) return null;
  return h('section', { 'aria-label': heading }, h('h2', {}, heading), ...content);
}

/** Draws a table. On narrow screens, each row is a list of its cells with their headings. */
function table(headings, rows, label) {
  for (const row of rows) {
    [...row.children].forEach((cell, at) => {
      if (cell.tagName !== 'TD' || !cell.hasChildNodes()) return;
      cell.setAttribute('data-label', visible(headings[at]?.text ?? ''));
      cell.replaceChildren(h('div', { class: 'value' }, [...cell.childNodes]));
    });
  }
  const head = headings.map((heading) => h('th', { scope: 'col', class: heading.number ? 'number' : null }, heading.text));
  return h('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': label },
    h('table', { class: 'stack' }, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows)));
}

/** Returns the heading of a column with words, or with numbers. */
const words = (text) => ({ text });
const numbers = (text) => ({ text, number: true });

function arms() {
  if (index.arms.length === 0) return null;
  const triggers = index.arms.some((arm) => arm.trigger);
  const several = index.arms.length > 1;
  const rows = index.arms.map((arm) => {
    const [low, high] = [arm.full_pass_rate_min, arm.full_pass_rate_max];
    const isKnown = low === high;
    const unknown = arm.trials - arm.passed - arm.failed;
    const rate = low === null ? 'n/a' : isKnown ? percent(low) : `${percent(low)} to ${percent(high)}`;
    const range = arm.full_pass_rate_ci95;
    const told = range ? `${percent(range[0])} to ${percent(range[1])}` : 'n/a';
    const counts = (names) => names.filter((name) => arm[name]).map((name) => `${number(arm[name])} ${name}`).join(', ');
    const [open, rest] = [counts(['undecided', 'broken', 'stale']), counts(['skipped', 'cancelled'])];
    const mean = (estimate, format) => known(estimate, ({ mean }) => format(mean));
    const graded = arm.trials - arm.broken - arm.stale;
    const of = (trials) => trials > 0 && trials < graded ? ` (n=${trials})` : '';
    return h('tr', { class: arm.variant === 'without_skill' ? 'muted' : null },
      several && h('th', { scope: 'row' }, h('a', { href: route('', { filter: toggled('', 'arm', arm.arm) }) }, arm.arm)),
      h('td', { class: 'number' }, number(arm.cases)),
      h('td', { class: 'number' }, `${arm.passed}${unknown > 0 ? ` to ${arm.passed + unknown}` : ''} of ${arm.trials}`
        + (arm.flaky ? ' at the first attempt' : '')),
      h('td', { class: 'number' }, rate),
      h('td', {}, low === null ? 'n/a' : interval({
        mean: isKnown ? low : null, range, from: 0, to: 1, marks: [0, 0.5, 1],
        label: `${rate}, interval ${told}`,
      }), ' ', h('span', { class: 'told' }, told)),
      h('td', { class: 'number' }, mean(arm.pass_rate, percent)),
      h('td', { class: 'number' }, mean(arm.duration_s, (seconds) => time(seconds * 1000))),
      h('td', { class: 'number' }, mean(arm.tokens, number), of(arm.trials_with_tokens)),
      h('td', { class: 'number' }, mean(arm.cost_usd, money), of(arm.trials_with_cost)),
      triggers && h('td', { class: 'number' }, arm.trigger ? recall(arm.trigger) : ''),
      h('td', {}, open || 'none'),
      h('td', {}, rest || 'none'));
  });
  return table([...several ? [words('Arm')] : [], numbers('Cases'), numbers('Trials passed'), numbers('Pass rate'),
    words('95% interval of the pass rate'), numbers('Checks met'), numbers('Time per trial'), numbers('Tokens per trial'),
    numbers('Cost per trial'), ...triggers ? [numbers('Skill used when wanted')] : [],
    words('Could have passed or failed'), words('Excluded')], rows,
    several ? 'Arms' : 'Result');
}

/** Formats how often the skill was used when wanted: a range if it is not known for some trials. */
function recall({ recall: mean, recall_min: least, recall_max: most }) {
  return mean === null && least !== null ? `${percent(least)} to ${percent(most)}` : known(mean, percent);
}

/** Draws the differences between the arm with the skill and the one without. */
function deltas() {
  return index.deltas.map((delta) => {
    const measures = [
      ['Trials passed, in points', delta.full_pass_rate, delta.full_pass_rate_ci95, points, 1],
      ['Checks met, in points', delta.pass_rate, delta.ci95, points, 1],
      ['Time per trial', delta.duration_s, delta.duration_s_ci95, (value) => signed(value, (s) => time(s * 1000))],
      ['Tokens per trial', delta.tokens, delta.tokens_ci95, (value) => signed(value, number)],
      ['Cost per trial', delta.cost_usd, delta.cost_usd_ci95, (value) => signed(value, money)],
    ];
    // The difference is a range if trials that it depends on could have passed or failed.
    const possible = [delta.full_pass_rate_min, delta.full_pass_rate_max];
    const isRange = delta.full_pass_rate === null && possible[0] !== null;
    const isShown = ([, mean], at) => mean !== null || at === 0 && isRange;
    const rows = measures.filter(isShown).map(([name, mean, range, format, most]) => {
      const shown = mean === null ? `${format(possible[0])} to ${format(possible[1])}` : format(mean);
      const end = most ?? (Math.max(...[mean, ...range ?? []].map(Math.abs)) * 1.1 || 1);
      const told = range ? `${format(range[0])} to ${format(range[1])}` : 'n/a';
      return h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'number' }, shown),
        h('td', {}, interval({
          mean, range, from: -end, to: end, marks: [0], kind: 'delta', label: `${shown}, interval ${told}`,
        }), ' ', h('span', { class: 'told' }, told)));
    });
    const unpaired = delta.cases_unpaired ? `, ${counted(delta.cases_unpaired, 'case')} in only one arm excluded` : '';
    return [
      h('h3', {}, `With the skill minus without it${index.deltas.length > 1 ? `: ${delta.with}` : ''}, `,
        `${counted(delta.pairs, 'case')}${unpaired}`),
      table([words('Measure'), numbers('Difference'), words('95% interval')], rows, 'Differences'),
    ];
  });
}

function extremes() {
  const top = (of, format, heading) => {
    const all = trials.filter((trial) => of(trial) > 0).sort((a, b) => of(b) - of(a));
    // Among equal values, none is the largest.
    const differ = new Set(all.map((trial) => format(of(trial)))).size > 1;
    return differ && trials.length > 3 && h('p', { class: 'facts' }, h('span', { class: 'muted' }, heading),
      all.slice(0, 3).map((trial) => h('span', {}, h('a', { href: link(trial) }, caseName(trial)),
        ` ${hasArms || hasRepetitions ? `${armName(trial)}, ` : ''}${format(of(trial))}`)));
  };
  return [
    top((trial) => trial.ms, time, 'Slowest'),
    top((trial) => trial.cost ?? 0, money, 'Most expensive'),
  ];
}

/** Returns the view of the list. Trials of the same case are grouped unless the reader chose otherwise or sorts them. */
function shownView({ view, sort }) {
  return view || (!sort && (hasArms || hasRepetitions) ? 'cases' : 'trials');
}

/** Draws the list of trials with its filter. */
function list(current) {
  const box = h('div', { id: 'list' });
  const input = h('input', {
    type: 'search', id: 'filter', value: current.filter, autocomplete: 'off', spellcheck: 'false',
    'aria-label': 'Filter trials', placeholder: 'Filter, such as outcome:failed', title: 'The key ? lists all filters',
    oninput: () => { change({ filter: input.value }); },
  });
  const buttons = h('div', { class: 'choices', role: 'group', 'aria-label': 'Filters' });
  let state = current;
  const change = (changes) => {
    state = { ...state, ...changes };
    history.replaceState(null, '', route('', state));
    lastList = state;
    if (input.value !== state.filter) input.value = state.filter;
    show();
  };
  const show = () => {
    const found = listed(state);
    buttons.replaceChildren(...choices(state, change));
    const view = shownView(state) === 'cases' ? cases(found) : trialsTable(found, state, change);
    box.replaceChildren(h('p', { class: 'muted', id: 'found' }, `${number(found.length)} of ${counted(trials.length, 'trial')}`
      + (index.run.planned > trials.length ? `, ${number(index.run.planned)} planned` : '')), view);
  };
  show();
  const part = h('section', { 'aria-label': 'Trials' },
    h('div', { class: 'bar' }, h('h2', {}, 'Trials'), input, buttons), box);
  return { section: part, update: show };
}

/** Draws the buttons and menus that write the filter. */
function choices(state, change) {
  const button = (key, value, count) => h('button', {
    'aria-pressed': String(chosen(state.filter, key).includes(value)),
    onclick: () => change({ filter: toggled(state.filter, key, value) }),
  }, `${value} ${number(count)}`);
  const menu = (key, all) => all.length > 1 && h('select', {
    'aria-label': key, onchange: (event) => {
      const without = chosen(state.filter, key).reduce((text, value) => toggled(text, key, value), state.filter);
      change({ filter: event.target.value ? toggled(without, key, event.target.value) : without });
    },
  }, h('option', { value: '' }, `any ${key}`), all.map((value) => h('option', {
    value, selected: chosen(state.filter, key).includes(value.toLowerCase()),
  }, value)));
  const distinct = (of) => [...new Set(trials.flatMap(of))].sort();
  const view = (name, text) => h('button', {
    'aria-pressed': String(shownView(state) === name), onclick: () => change({ view: name }),
  }, text);
  const counts = (name) => trials.filter((trial) => values(trial, 'outcome').includes(name)).length;
  return [
    ...[...Object.keys(OUTCOMES), 'flaky', 'quarantined', 'baseline'].filter((name) => counts(name) > 0)
      .map((name) => button('outcome', name, counts(name))),
    menu('arm', distinct((trial) => trial.arm)),
    menu('suite', distinct((trial) => trial.suite)),
    menu('tag', distinct((trial) => trial.tags ?? [])),
    ...(hasArms || hasRepetitions ? [view('trials', 'by trial'), view('cases', 'by case')] : []),
  ].filter(Boolean);
}

function trialsTable(found, state, change) {
  const columns = COLUMNS.filter((column) => column.sort !== 'arm' || hasArms || hasRepetitions);
  const sort = state.sort || 'failures';
  const heads = columns.map((column) => h('th', {
    scope: 'col', class: column.number ? 'number' : null,
    'aria-sort': column.sort === sort ? (['time', 'tokens', 'cost'].includes(sort) ? 'descending' : 'ascending') : null,
  }, h('button', { class: 'sort', onclick: () => change({ sort: column.sort }) },
    column.sort === 'arm' && !hasArms ? 'Trial' : column.heading)));
  const body = h('tbody', {});
  const more = h('button', { onclick: () => add() });
  const add = () => {
    const from = body.childElementCount;
    body.append(...found.slice(from, from + ROWS).map((trial) => row(trial)));
    const left = found.length - body.childElementCount;
    more.hidden = left <= 0;
    more.textContent = `Show ${number(Math.min(left, ROWS))} more of ${number(left)}`;
  };
  add();
  return h('div', {}, h('div', { class: 'wide' },
    h('table', { class: 'trials' }, h('thead', {}, h('tr', {}, heads)), body)), more);
}

function row(trial) {
  const cell = (label, ...content) => h('td', { class: 'number', 'data-label': label }, ...content);
  return h('tr', { class: trial.baseline ? 'muted' : null, onclick: (event) => {
    if (!event.target.closest('a') && !String(getSelection())) location.hash = link(trial);
  } },
  h('td', { class: 'first' }, outcome(trial)),
  h('td', { class: 'name' }, h('a', { href: link(trial), 'data-stop': true }, caseName(trial)),
    trial.title && trial.title !== trial.case && h('span', { class: 'muted' }, ` ${trial.title}`),
    h('div', { class: 'reason' }, trial.reason ? marked(line(trial.reason, 300)) : null),
    h('div', { class: 'place' }, place(trial), (trial.tags ?? []).map((tag) => h('span', { class: 'tag' }, tag)))),
  (hasArms || hasRepetitions) && h('td', { class: 'arm' }, armName(trial)),
  cell('checks met', checks(trial.checks)),
  cell('time', time(trial.ms)),
  cell('tokens', known(trial.tokens, number)),
  cell('cost', known(trial.cost, money)));
}

/** Describes how many of the trials passed. Those without a result could have passed. */
function share(group) {
  const of = (...outcomes) => group.filter((trial) => outcomes.includes(trial.outcome)).length;
  const [{ outcome }] = group;
  if (group.length === 1) return outcome;
  if (!['passed', 'failed'].includes(outcome) && of(outcome) === group.length) return `${group.length} ${outcome}`;
  const [passed, open] = [of('passed'), of('undecided', 'broken', 'stale')];
  return `${passed}${open > 0 ? ` to ${passed + open}` : ''} of ${group.length} passed`;
}

/** Draws a row for each case, with a dot for each of its trials in each arm. */
function cases(found) {
  const all = [...new Set(trials.map((trial) => trial.arm))].sort();
  const groups = Map.groupBy(found, (trial) => trial.group);
  const rows = [...groups.values()].slice(0, ROWS).map((group) => {
    const of = (arm) => group.filter((trial) => trial.arm === arm).sort((a, b) => a.repetition - b.repetition);
    // A case may lack some of the arms: the first two that it has are compared, or two repetitions of its only arm.
    const present = all.map(of).filter((mine) => mine.length > 0);
    const [first, second] = present.length > 1 ? [present[0][0], present[1][0]] : present[0];
    const worst = [...group].sort(ORDERS.failures)[0];
    return h('tr', {},
      h('th', { scope: 'row' }, h('a', { href: link(worst), 'data-stop': true }, caseName(worst)),
        worst.title && worst.title !== worst.case && h('span', { class: 'muted' }, ` ${worst.title}`),
        worst.outcome !== 'passed' && !worst.baseline && worst.reason && h('div', { class: 'reason' }, marked(line(worst.reason, 200))),
        (worst.tags ?? []).map((tag) => h('span', { class: 'tag' }, tag))),
      all.map((arm) => {
        const mine = of(arm);
        return h('td', { class: 'nowrap' }, mine.length > 0 && [dots(mine), ' ', h('span', { class: 'share' }, share(mine))]);
      }),
      h('td', { class: 'nowrap' }, first && second && h('a', { href: comparison(first, second) }, 'side by side')));
  });
  const left = groups.size - rows.length;
  const headings = all.length > 1 ? all.map(words) : [words('Trials')];
  return [table([words('Case'), ...headings, words('Compare')], rows, 'Cases'),
    left > 0 && h('p', { class: 'muted' }, `${number(left)} more cases; use the filter`)].filter(Boolean)
    .reduce((box, part) => { box.append(part); return box; }, h('div', {}));
}
