// The overview: what happened in a sentence, the arms, and the list of trials.

/** Number of rows that are added to the list at once. */
const ROWS = 500;

/** Maximum number of skills that are listed by name. */
const SKILLS = 10;

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
    run.started_at.slice(0, 16).replace('T', ' ') + ' UTC',
    run.duration_ms !== null && time(run.duration_ms),
    run.tokens !== null && `${number(run.tokens)} tokens`,
    run.cost_usd !== null && money(run.cost_usd),
    run.judge_cost_usd !== null && `${money(run.judge_cost_usd)} for judges`,
    ...run.agents.map((agent) => [agent.name, agent.version, agent.model].filter(Boolean).join(' ')),
    ...run.skills.slice(0, SKILLS).map((skill) => `skill ${skill.name}${skill.version ? ` ${skill.version}` : ''}`),
    run.skills.length > SKILLS && `${counted(run.skills.length - SKILLS, 'more skill')}`,
  ].filter(Boolean);
  return [
    h('h1', { tabindex: '-1' }, index.verdicts.length > 0
      ? index.verdicts.map((sentence, at) => h('span', { class: 'verdict' }, at === 0 && isActive() && 'So far: ', sentence))
      : 'No trial has finished yet'),
    h('p', { class: 'facts' }, isActive()
      ? [h('strong', { class: 'result RUNNING' }, 'RUNNING'), progress()]
      : [h('strong', { class: `result ${run.result.replace(' ', '-')}` }, run.result), marked(run.because),
        index.live && !index.live.is_over && 'interrupted: its process is gone']),
    (index.pass_rates ?? []).map((sentence) => h('p', {}, sentence)),
    h('p', { class: 'facts muted' }, facts.map((fact) => h('span', {}, fact))),
    section('Arms', arms(), deltas()),
    section('Slowest and most expensive', extremes()),
    section(isActive() ? 'Running now' : 'Interrupted before an outcome', runningTable()),
  ];
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
  const rows = index.arms.map((arm) => {
    const passed = arm.full_pass_rate === null ? 0 : Math.round(arm.full_pass_rate * arm.decided_trials);
    const range = arm.full_pass_rate_ci95;
    const told = range ? `${percent(range[0])} to ${percent(range[1])}` : 'n/a';
    const rest = ['broken', 'stale', 'undecided', 'skipped', 'cancelled'].filter((name) => arm[name])
      .map((name) => `${arm[name]} ${name}`).join(', ');
    const mean = (estimate, format) => known(estimate, ({ mean }) => format(mean));
    return h('tr', { class: arm.variant === 'without_skill' ? 'muted' : null },
      h('th', { scope: 'row' }, h('a', { href: route('', { filter: toggled('', 'arm', arm.arm) }) }, arm.arm)),
      h('td', { class: 'number' }, number(arm.cases)),
      h('td', { class: 'number' }, `${passed} of ${arm.decided_trials}`),
      h('td', { class: 'number' }, known(arm.full_pass_rate, percent)),
      h('td', {}, arm.full_pass_rate === null ? 'n/a' : interval({
        mean: arm.full_pass_rate, range, from: 0, to: 1, marks: [0, 0.5, 1],
        label: `${percent(arm.full_pass_rate)}, interval ${told}`,
      }), ' ', h('span', { class: 'told' }, told)),
      h('td', { class: 'number' }, mean(arm.pass_rate, percent)),
      h('td', { class: 'number' }, mean(arm.duration_s, (seconds) => time(seconds * 1000))),
      h('td', { class: 'number' }, mean(arm.tokens, number)),
      h('td', { class: 'number' }, mean(arm.cost_usd, money)),
      triggers && h('td', { class: 'number' }, arm.trigger ? known(arm.trigger.recall, percent) : ''),
      h('td', {}, rest || 'none'));
  });
  return table([words('Arm'), numbers('Cases'), numbers('Trials passed'), numbers('Pass rate'),
    words('95% interval of the pass rate'), numbers('Checks met'), numbers('Time per trial'), numbers('Tokens per trial'),
    numbers('Cost per trial'), ...triggers ? [numbers('Skill used when wanted')] : [], words('Not counted')], rows, 'Arms');
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
    const rows = measures.filter(([, mean]) => mean !== null).map(([name, mean, range, format, most]) => {
      const end = most ?? (Math.max(...[mean, ...range ?? []].map(Math.abs)) * 1.1 || 1);
      const told = range ? `${format(range[0])} to ${format(range[1])}` : 'n/a';
      return h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'number' }, format(mean)),
        h('td', {}, interval({
          mean, range, from: -end, to: end, marks: [0], kind: 'delta', label: `${format(mean)}, interval ${told}`,
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
    const view = state.view === 'cases' ? cases(found) : trialsTable(found, state, change);
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
    'aria-pressed': String((state.view || 'trials') === name), onclick: () => change({ view: name }),
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
  }, h('button', { class: 'sort', onclick: () => change({ sort: column.sort }) }, column.heading)));
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

/** Draws a row for each case, with its trials in each arm side by side. */
function cases(found) {
  const all = [...new Set(trials.map((trial) => trial.arm))].sort();
  const groups = Map.groupBy(found, (trial) => `${trial.suite}::${trial.case}`);
  const rows = [...groups.values()].slice(0, ROWS).map((group) => {
    const of = (arm) => group.filter((trial) => trial.arm === arm).sort((a, b) => a.repetition - b.repetition);
    // A case may lack some of the arms: the first two that it has are compared, or two repetitions of its only arm.
    const present = all.map(of).filter((mine) => mine.length > 0);
    const [first, second] = present.length > 1 ? [present[0][0], present[1][0]] : present[0];
    return h('tr', {},
      h('th', { scope: 'row' }, caseName(group[0])),
      all.map((arm) => {
        const mine = of(arm);
        const passed = mine.filter((trial) => trial.outcome === 'passed').length;
        return h('td', {}, mine.length > 0 && [h('span', { class: 'share' }, `${passed} of ${mine.length} passed`), ' ',
          mine.slice(0, 20).map((trial) => [h('a', { href: link(trial), 'data-stop': true }, outcome(trial, false)), ' '])]);
      }),
      h('td', {}, first && second && h('a', { href: comparison(first, second) }, 'side by side')));
  });
  const left = groups.size - rows.length;
  return [table([words('Case'), ...all.map(words), words('Compare')], rows, 'Cases'),
    left > 0 && h('p', { class: 'muted' }, `${number(left)} more cases; use the filter`)].filter(Boolean)
    .reduce((box, part) => { box.append(part); return box; }, h('div', {}));
}
