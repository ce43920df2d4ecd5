// Addresses, keys and the frame of the page.

/** State of the list that was shown last; "previous" and "next" follow it. */
let lastList = { filter: '', sort: '', view: '' };

/** Returns the address of a view. For the list, it includes the state that differs from the initial one. */
function route(path, state = {}) {
  const parameters = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  return `#/${path}${parameters.size > 0 ? `?${parameters}` : ''}`;
}

/** The overview, if it is part of the page. */
const fixed = index.fixed ? [...document.getElementById('main').childNodes] : null;

/** Draws the link back to the overview. */
function back() {
  return h('a', { href: route('', lastList), id: 'back' }, fixed ? index.run.label : 'All trials');
}

function view() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  onIndex = () => {};
  const [kind, ...ids] = path.split('/');
  const parameters = new URLSearchParams(query);
  const found = () => ids.map((id) => { try { return trialOf(decodeURIComponent(id)); } catch { return undefined; } });
  const [a, b] = found();
  if (kind === 'trial' && a) return { title: a.id, content: a.outcome ? trialPage(a) : runningPage(a) };
  if (kind === 'compare' && a?.outcome && b?.outcome) return { title: `${a.case}, side by side`, content: comparePage(a, b) };
  if (kind) {
    // A trial that has not started yet may appear.
    const state = () => JSON.stringify(found().map((trial) => trial && (trial.outcome ?? 'running')));
    const before = state();
    onIndex = () => state() !== before && navigate();
    return { title: 'not found', content: [h('h1', { tabindex: '-1' }, 'There is no such trial in this report'), h('p', {}, h('a', { href: '#/' }, 'All trials'))] };
  }
  if (fixed) return { title: index.run.label, content: fixed };
  lastList = { filter: parameters.get('filter') ?? '', sort: parameters.get('sort') ?? '', view: parameters.get('view') ?? '' };
  return { title: index.run.label ?? index.run.id.slice(0, 8), content: overview(lastList) };
}

let latest = 0;

/** Shows content, which may have to be inflated first. */
async function show(content, focus = true) {
  const mine = ++latest;
  const main = document.getElementById('main');
  main.setAttribute('aria-busy', 'true');
  let parts;
  try {
    parts = await content;
  } catch (error) {
    parts = [h('h1', { tabindex: '-1' }, 'The trial cannot be shown'), h('p', {}, `${error}`)];
  }
  if (mine !== latest) return;
  main.replaceChildren();
  append(main, [parts]);
  main.removeAttribute('aria-busy');
  if (focus) {
    scrollTo(0, 0);
    main.querySelector('h1')?.focus({ preventScroll: true });
  }
}

function navigate(focus = true) {
  const { title, content } = view();
  document.title = `${visible(title)} · trialrun`;
  return show(content, focus);
}

const HELP = [
  ['j  k', 'next, previous: trial, turn or tool call'], ['Enter', 'open'], ['→  ←', 'next, previous trial of the list'],
  ['/', 'filter'], ['c', 'copy the trial as a prompt'], ['Escape', 'back to all trials'], ['?', 'these keys'],
];

const FILTERS = [
  ['word "two words"', 'in the id, the reason, a tag or the file'],
  ['outcome:failed', 'passed, failed, undecided, broken, stale, skipped, cancelled, flaky, quarantined, baseline'],
  ['arm:…  suite:…  case:…  tag:…', 'exactly'], ['tests/a.yaml:12', 'a case by its file and line'], ['-word', 'without'],
];

function help() {
  const terms = (list) => h('dl', { class: 'keys' }, list.map(([keys, effect]) => [h('dt', {}, h('kbd', {}, keys)), h('dd', {}, effect)]));
  const dialog = h('dialog', { 'aria-label': 'Help', id: 'help' }, h('h2', {}, 'Keys'), terms(HELP), h('h2', {}, 'Filter'), terms(FILTERS),
    h('form', { method: 'dialog' }, h('button', {}, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Moves the focus through the view: rows of the list, or turns and calls. */
function move(by) {
  const stops = [...document.querySelectorAll('#main [data-stop]')].filter((stop) => stop.checkVisibility());
  const at = stops.indexOf(document.activeElement);
  const next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.min(Math.max(at + by, 0), stops.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

const KEYMAP = {
  j: () => move(1),
  k: () => move(-1),
  '/': () => {
    const filter = document.getElementById('filter');
    if (filter) filter.focus();
    else { location.hash = route('', lastList); focusFilter = true; }
  },
  '?': help,
  c: () => document.getElementById('copy')?.click(),
  ArrowLeft: () => document.querySelector('a[rel=prev]')?.click(),
  ArrowRight: () => document.querySelector('a[rel=next]')?.click(),
  Escape: () => document.getElementById('back')?.click(),
};

let focusFilter = false;

addEventListener('keydown', (event) => {
  const isTyping = event.target.matches('input[type=search], textarea, select');
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (isTyping) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const action = KEYMAP[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

addEventListener('hashchange', async () => {
  await navigate();
  if (focusFilter) document.getElementById('filter')?.focus();
  focusFilter = false;
});

function frame() {
  const record = index.record ?? index.live?.record;
  const themes = ['', 'light', 'dark'];
  const theme = h('button', { onclick: () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? '') + 1) % themes.length];
    document.documentElement.dataset.theme = next;
    theme.textContent = `Theme: ${next || 'system'}`;
  } }, 'Theme: system');
  document.getElementById('top').append(
    h('a', { href: '#/', class: 'home' }, 'trialrun'), ...(record ? [h('a', { href: record }, 'All runs')] : []),
    h('span', { class: 'run' }, [index.run.label, index.run.id.slice(0, 8)].filter(Boolean).join(' · ')),
    theme, h('button', { onclick: help, 'aria-keyshortcuts': '?' }, 'Keys'));
}

// The link to the content must not be mistaken for the address of a view.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
frame();
navigate();
if (index.live) follow();
