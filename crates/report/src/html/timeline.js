// The timeline of a trial: messages, turns of the model, tool calls, and what happened around them.

/** Number of items that are added to a timeline at once. */
const ITEMS = 300;

/** Returns the steps that a trial without recorded steps, such as a regraded one, has according to its record. */
function recorded({ trial }) {
  const events = [];
  const add = (step) => events.push({ ms: null, attempt: 1, event: { type: 'step', ...step } });
  const turns = trial.turns?.length ? trial.turns : (trial.messages ?? []).length ? [] : [{ answer: trial.answer }];
  turns.forEach(({ message }, at) => message && add({ kind: 'user_message', index: at + 1, of: turns.length, text: message }));
  (trial.tool_calls ?? []).forEach((call, at) => {
    add({ kind: 'tool_call', id: `c${at}`, ...call, message: `m${call.turn}` });
    if (call.result !== null) add({ kind: 'tool_result', id: `c${at}`, content: call.result, is_error: call.is_error });
  });
  if (trial.answer) add({ kind: 'text', message: 'answer', text: trial.answer });
  return events;
}

/** Returns the numbers of the attempts that have events. */
function attempts(transcript) {
  return [...new Set(transcript.events.map((event) => event.attempt))];
}

/**
 * Builds the items of one attempt. Turns and calls are numbered as in findings, including those of sub-agents. The
 * items of a sub-agent are children of the call that started it.
 */
function items(transcript, attempt) {
  const own = transcript.events.filter((event) => event.attempt === attempt);
  const events = own.some(({ event }) => event.type === 'step') ? own : [...own, ...recorded(transcript)];
  const top = [], turns = new Map(), calls = new Map();
  let lastTurn = null, callCount = 0, reply = [];
  const turnOf = (ms, { message, parent }) => {
    const key = `${message}\n${parent ?? ''}`;
    if (!turns.has(key)) {
      const turn = { kind: 'turn', number: turns.size, ms, parts: [], isSub: Boolean(parent) };
      turns.set(key, turn);
      (calls.get(parent)?.children ?? top).push(turn);
      reply.push(turn);
    }
    return lastTurn = turns.get(key);
  };
  for (const { ms, event } of events) {
    switch (event.type === 'step' ? event.kind : event.type) {
      case 'text':
      case 'thinking': {
        const { parts } = turnOf(ms, event);
        const last = parts.at(-1);
        // A stream delivers text in pieces.
        if (last?.kind === event.kind) last.text += event.text;
        else parts.push({ kind: event.kind, text: event.text });
        break;
      }
      case 'tool_call': {
        const call = { kind: 'call', number: callCount++, ms, call: event, children: [], result: null };
        turnOf(ms, event).parts.push(call);
        calls.set(event.id, call);
        break;
      }
      case 'tool_result': {
        const call = calls.get(event.id);
        if (call) Object.assign(call, { result: event, took: ms - call.ms });
        break;
      }
      case 'question':
        if (lastTurn) lastTurn.parts.push({ kind: 'question', question: event });
        else top.push({ kind: 'question', question: event, ms });
        break;
      case 'user_message':
        top.push({ kind: 'message', ms, ...event, kind: 'message' });
        reply = [];
        break;
      case 'finished': {
        const said = reply.flatMap((turn) => turn.parts).filter((part) => part.kind === 'text').map((part) => part.text);
        const isNew = event.text && said.at(-1)?.trim() !== event.text.trim() && said.join('').trim() !== event.text.trim();
        top.push({ kind: 'reply', ms, finished: event, text: isNew ? event.text : null });
        break;
      }
      case 'replied': break;
      default: top.push({ kind: 'notice', ms, text: notice(event) });
    }
  }
  return top;
}

/** Describes an attempt to reach a host in one line. */
function egress({ host, port, verdict, way, is_model: isModel, by_command: byCommand, because }) {
  const place = port ? `${host}:${port}` : host;
  const notes = [way === 'dns' && 'DNS lookup', way === 'direct' && 'without the proxy', isModel && 'the model',
    byCommand && "by an assertion's command", because];
  return [`${verdict} ${place}`, ...notes.filter(Boolean)].join(', ');
}

/** Describes an occurrence of a fault of the case in one line. */
function fault({ fault: kind, number, detail }) {
  if (!number) return detail;
  return `${kind === 'tool_fails' ? 'run' : 'model request'} ${number}: ${detail}`;
}

/** Describes a call that a mock received in one line. */
function mockCall({ server, tool, input, verdict }) {
  const given = server ? JSON.stringify(input) : input.line;
  return `${server ? `${server}/` : ''}${tool} ${given}: ${verdict.replace('_', ' ')}`;
}

/** Describes an event around the conversation in one line. */
function notice(event) {
  switch (event.kind ?? event.type) {
    case 'session':
      return ['session', event.session_id, event.model, event.agent_version, event.auth].filter(Boolean).join(' · ');
    case 'permission_denied': return `permission denied: ${event.tool}: ${event.message}`;
    case 'retry': return `the provider failed${event.status ? ` with ${event.status}` : ''}, attempt ${event.attempt}: ${event.error}`;
    case 'egress': return `network: ${egress(event)}`;
    case 'fault': return `injected fault: ${fault(event)}`;
    case 'mocks':
      return `MCP servers and mocks: ${[event.servers, event.real_servers, event.commands].flat().join(', ')}`;
    case 'mock_call': return `mock ${mockCall(event)}`;
    case 'request_check': return `request ${event.step} is ${event.met ? '' : 'not '}as the script expects: ${event.because}`;
    case 'notice': return `${event.from}: ${event.text}`;
    case 'calls_unreported': return 'the reply does not report which tools were called';
    case 'sandbox_ready': return `sandbox ready after ${time(event.duration_ms)}`;
    case 'trial_retried': return `retried: ${event.because}`;
    case 'hook_finished':
      return `hook: ${event.command} (exit code ${event.exit_code ?? 'n/a'})\n${event.stdout ?? ''}${event.stderr ?? ''}`;
    default: return event.kind ?? event.type;
  }
}

/** Returns the most descriptive argument of a call in one line. */
function argument({ input }) {
  if (input === null || typeof input !== 'object') return line(asText(input ?? ''));
  const asked = input.questions?.[0]?.question;
  if (typeof asked === 'string') return line(asked);
  const names = ['command', 'file_path', 'path', 'pattern', 'query', 'url', 'skill', 'question', 'description'];
  const name = names.find((known) => typeof input[known] === 'string')
    ?? Object.keys(input).find((key) => typeof input[key] === 'string');
  return name ? line(input[name]) : line(JSON.stringify(input).slice(0, 1000));
}

/** Adds the findings that do not hold and that no turn shows, because they are about the whole conversation. */
function withOpenFindings(all, findings) {
  const open = findings.filter(({ status, at }) => status !== 'met' && typeof at?.turn !== 'number' && typeof at?.call !== 'number');
  return open.length > 0 ? [...all, { kind: 'findings', findings: open }] : all;
}

/** Draws items, a portion at a time. */
function draw(all, context) {
  const box = h('ol', { class: 'items' });
  const more = h('button', { class: 'more', onclick: () => add() });
  let shown = 0;
  const add = () => {
    for (const item of all.slice(shown, shown + ITEMS)) box.append(h('li', { class: `item ${item.kind}` }, drawItem(item, context)));
    shown = Math.min(shown + ITEMS, all.length);
    more.hidden = shown === all.length;
    more.textContent = `Show ${number(Math.min(ITEMS, all.length - shown))} more of ${number(all.length - shown)}`;
  };
  add();
  return [box, more];
}

function when(ms) {
  return ms === null || ms === undefined ? null : h('span', { class: 'when' }, `+${time(ms)}`);
}

function drawItem(item, context) {
  switch (item.kind) {
    case 'message': return [
      h('h3', { tabindex: '-1', 'data-stop': true }, item.of > 1 ? `User, message ${item.index} of ${item.of}` : 'User', when(item.ms)),
      folded(item.text, 'said'),
    ];
    case 'turn': {
      const found = context.findings.filter(({ at }) => at && (at.turn === item.number
        || item.parts.some((part) => part.kind === 'call' && part.number === at.call)));
      return [
        h('h3', { tabindex: '-1', 'data-stop': true, id: `turn-${context.side ?? ''}${item.number + 1}` },
          `Turn ${item.number + 1}${item.isSub ? ', sub-agent' : ''}`, when(item.ms)),
        item.parts.map((part) => drawPart(part, context)),
        found.map((finding) => drawFinding(finding, true)),
      ];
    }
    case 'question': return drawPart(item, context);
    case 'findings': return [
      h('h3', { tabindex: '-1', 'data-stop': true }, 'After the conversation'), item.findings.map((finding) => drawFinding(finding, true)),
    ];
    case 'reply': return [item.text && block(item.text), drawUsage(item.finished, item.ms)];
    default: return block(item.text);
  }
}

function drawUsage({ usage, subtype, is_error: isError }, ms) {
  const { tokens, cost_usd: cost } = usage;
  const input = tokens && tokens.input + tokens.cache_read + tokens.cache_write;
  return h('p', { class: 'usage' }, [
    isError ? `ended with an error (${subtype})` : 'answered', ms !== null && `after ${time(ms)}`,
    tokens && `${number(input)} tokens in${tokens.cache_read ? ` (${percent(tokens.cache_read / input)} from the cache)` : ''}`,
    tokens && `${number(tokens.output)} out`, tokens?.reasoning && `${number(tokens.reasoning)} of them thinking`,
    known(cost, money) !== 'n/a' && money(cost),
  ].filter(Boolean).map((fact) => h('span', {}, fact)));
}

function drawPart(part, context) {
  switch (part.kind) {
    case 'text': return block(part.text);
    case 'thinking': return h('div', { class: 'thinking' }, h('span', { class: 'label' }, 'thinking'),
      part.text ? block(part.text) : h('p', { class: 'muted' }, 'The vendor hides the text.'));
    case 'question': {
      const { question, options, answer } = part.question;
      return h('div', { class: 'question' }, h('span', { class: 'label' }, 'question'), block(question),
        options.length > 0 && h('ul', {}, options.map((option) => h('li', {}, option, option === answer && ' ✓'))),
        answer === null ? h('p', { class: 'muted' }, 'No prepared answer matched.') : block(answer, 'said'));
    }
    default: return drawCall(part, context);
  }
}

/** Draws a tool call: one line, and its whole input and result when it is opened. */
function drawCall(call, context) {
  const { result, children } = call;
  const body = h('div', { class: 'body' });
  const head = h('summary', { 'data-stop': true, id: context.opened && `call-${call.number + 1}` },
    h('span', { class: 'tool' }, call.call.name), ' ', h('code', { dir: 'ltr' }, argument(call.call)),
    result?.is_error && h('span', { class: 'error' }, ' error'),
    call.took > 0 && h('span', { class: 'when' }, time(call.took)),
    result && h('span', { class: 'preview' }, line(result.content, 200)));
  const details = h('details', { class: 'call', open: context.open || context.opened?.has(call.number), ontoggle: () => fill() }, head, body);
  const fill = () => {
    context.opened?.[details.open ? 'add' : 'delete'](call.number);
    if (!details.open || body.childElementCount > 0) return;
    append(body, [
      drawInput(call.call),
      h('div', { class: 'result' }, h('span', { class: 'label' }, result ? result.is_error ? 'error' : 'result' : 'no result'),
        result && block(result.content, result.is_error ? 'error' : '')),
    ]);
  };
  fill();
  return [details, children.length > 0 && h('div', { class: 'sub' }, draw(children, context))];
}

/** Draws the whole input: texts as lines, edits as differences. */
function drawInput({ name, input, raw_name: raw }) {
  const label = h('span', { class: 'label' }, raw && raw !== name ? `input of ${raw}` : 'input');
  if (input === null || typeof input !== 'object') return h('div', { class: 'input' }, label, block(asText(input ?? '')));
  const isEdit = typeof input.old_string === 'string' && typeof input.new_string === 'string';
  const fields = Object.entries(input).filter(([key]) => !(isEdit && ['old_string', 'new_string'].includes(key)));
  return h('div', { class: 'input' }, label,
    fields.map(([key, value]) => h('div', { class: 'field' }, h('span', { class: 'key' }, key), block(asText(value)))),
    isEdit && diff(edited(input.old_string, input.new_string)));
}

/** Returns an edit as lines of a patch. Lines that both texts begin or end with are its context. */
function edited(before, after) {
  const [old, now] = [before, after].map((text) => text === '' ? [] : text.replace(/\n$/, '').split('\n'));
  const least = Math.min(old.length, now.length);
  let start = 0, end = 0;
  while (start < least && old[start] === now[start]) start += 1;
  while (end < least - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const middle = (lines, sign) => lines.slice(start, lines.length - end).map((text) => sign + text);
  const same = (lines) => lines.map((text) => ` ${text}`);
  return [...same(old.slice(0, start)), ...middle(old, '-'), ...middle(now, '+'), ...same(old.slice(old.length - end))].join('\n');
}

/** Returns all calls, including those of sub-agents. */
function callsOf(all) {
  return all.flatMap((item) => item.parts ?? []).filter((part) => part.kind === 'call')
    .flatMap((call) => [call, ...callsOf(call.children)]);
}

/** Draws a patch. */
function diff(patch) {
  if (patch.length > FIRST * 10) return block(patch);
  const kind = (text) => /^(\+\+\+|---|diff |index |new file|deleted file)/.test(text) ? 'file'
    : text.startsWith('@@') ? 'hunk' : text.startsWith('+') ? 'added' : text.startsWith('-') ? 'removed' : '';
  return h('pre', { class: 'text diff' }, patch.replace(/\n$/, '').split('\n')
    .map((text) => h('span', { class: `line ${kind(text)}` }, `${text}\n`)));
}
