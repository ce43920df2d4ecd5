// A run in progress. A server sends the page, its index again whenever it has changed, and the transcripts. A
// report in a file never requests anything.

/** Milliseconds between two requests for the index. */
const PAUSE = 1000;

/** Draws the view again after the index has changed. */
let onIndex = () => {};

/** True after a request that the server did not answer. */
let isLost = false;

function isActive() {
  return index.live?.is_active === true;
}

/** Returns a trial by its id, which may have no outcome yet. */
function trialOf(id) {
  return byId.get(id) ?? running().find((trial) => trial.id === id);
}

/** Returns what the reader can do after a connection is lost. The server of a whole record keeps its address. */
function again() {
  return index.live?.record ? 'The page goes on when the server answers again.'
    : 'Start `trialrun view` again and open the new address.';
}

/** Returns the server's response. Without one, the page says so and keeps what it has loaded. */
async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { cache: 'no-store', ...options });
  } catch {
    lose(true);
    throw new Error(`The server does not answer. ${again()}`);
  }
  lose(false);
  if (response.ok || response.status === 304) return response;
  throw new Error(`The server answered: ${line(await response.text(), 300)}`);
}

async function fetchTranscript(trial) {
  return (await request(`trial/${encodeURIComponent(trial.id)}`)).blob();
}

/** Shows or removes the notice that the server is gone. */
function lose(lost) {
  if (lost === isLost) return;
  isLost = lost;
  document.getElementById('lost')?.remove();
  if (lost) {
    document.getElementById('top').after(h('p', { id: 'lost', role: 'alert' },
      `The connection to trialrun is lost, so this page is no longer updated. What it has loaded is still shown. ${again()}`));
  }
}

/** Polls the index, and draws what has changed. */
async function follow() {
  let told = '';
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    try {
      const response = await request('index', { headers: { 'If-None-Match': `"${index.live.version}"` } });
      if (response.status !== 304) {
        takeIndex(await response.json());
        await onIndex();
        entitle();
      }
      for (const element of document.querySelectorAll('[data-since]')) element.textContent = elapsed(element.dataset.since);
      told = '';
    } catch (error) {
      if (!isLost && told !== error.message) announce(error.message);
      told = error.message;
    }
  }
}

/** Puts the progress into the title of the page. */
function entitle() {
  const title = document.title.replace(/^\(\d+ of \d+\) /, '');
  document.title = isActive() ? `(${trials.length} of ${index.run.planned}) ${title}` : title;
}

/** Draws without moving the focus or the scroll position. */
function redrawn(draw) {
  const { activeElement } = document;
  const [focus, key] = [activeElement?.id && `#${CSS.escape(activeElement.id)}`, activeElement?.getAttribute?.('href')];
  const y = scrollY;
  draw();
  if (activeElement && !activeElement.isConnected) {
    const again = focus ? document.querySelector(focus)
      : [...document.querySelectorAll('#main a[href]')].find((link) => key && link.getAttribute('href') === key);
    again?.focus({ preventScroll: true });
  }
  scrollTo({ top: y, behavior: 'instant' });
}

function elapsed(timestamp) {
  return time(Math.max(Date.now() - Date.parse(timestamp), 0));
}

/** Draws the time since then, which is updated during the run. */
function since(timestamp) {
  return h('span', { 'data-since': isActive() && timestamp }, elapsed(timestamp));
}

/** Draws the progress of the run, as a bar and in words. */
function progress() {
  const { planned } = index.run;
  return [
    h('progress', { max: planned, value: trials.length, 'aria-label': 'Finished trials' }),
    h('span', { id: 'progress' }, `${number(trials.length)} of ${counted(planned, 'trial')} finished, ${number(running().length)} running`),
    since(index.run.started_at),
  ];
}

/** Describes what a trial without an outcome is doing. */
function activity(trial) {
  const parts = [
    trial.waiting_on && [`waits for ${trial.waiting_on}`, trial.waiting_since && isActive() && [' (', since(trial.waiting_since), ')']],
    trial.doing, trial.attempt > 1 && `attempt ${trial.attempt}`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.map((part, at) => [at > 0 && ' · ', part]) : 'started';
}

function runningTable() {
  const all = running();
  if (all.length === 0) return null;
  const rows = all.slice(0, ROWS).map((trial) => h('tr', {},
    h('th', { scope: 'row' }, h('a', { href: link(trial), 'data-stop': true }, caseName(trial))),
    (hasArms || hasRepetitions) && h('td', {}, armName(trial)),
    isActive() && h('td', { class: 'number' }, since(trial.since)),
    h('td', { class: 'doing' }, activity(trial))));
  return [table([words('Case'), ...hasArms || hasRepetitions ? [words(hasArms ? 'Arm' : 'Trial')] : [], ...isActive() ? [numbers('Time')] : [],
    words('Activity')], rows, 'Running'), all.length > ROWS && h('p', { class: 'muted' }, `${number(all.length - ROWS)} more`)];
}

/** Draws a trial without an outcome. Its timeline grows until the page of the finished trial replaces it. */
async function runningPage(trial) {
  const address = location.hash;
  const facts = h('p', { class: 'facts muted' });
  const say = (now) => replace(facts, [now.arm, hasRepetitions && `#${now.repetition}`, isActive() && ['for ', since(now.since)], activity(now)]
    .filter(Boolean).map((fact) => h('span', {}, fact)));
  const newest = (transcript) => items(transcript, attempts(transcript).at(-1) ?? 1);
  const version = (now) => `${now.attempt} ${now.last_step_at}`;
  say(trial);
  const timeline = timelineSection(newest(await load(trial)), []);
  let drawn = version(trial);
  const update = async () => {
    const next = trialOf(trial.id);
    if (!next || next.outcome) return navigate(false);
    say(next);
    // Text that is being selected is not redrawn.
    if (drawn === version(next) || !getSelection().isCollapsed) return undefined;
    const grown = newest(await load(next));
    if (location.hash !== address) return undefined;
    drawn = version(next);
    return redrawn(() => timeline.redraw(grown));
  };
  if (location.hash === address) onIndex = update;
  return [
    h('nav', { class: 'crumbs', 'aria-label': 'Trials' }, back()),
    h('h1', { tabindex: '-1' }, caseName(trial), ' ', outcome(trial)),
    facts,
    timeline.section,
  ];
}
