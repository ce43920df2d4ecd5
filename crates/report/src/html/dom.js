'use strict';
// Elements, texts and numbers. Text from the run only ever becomes a text node or a readable attribute.

/** Characters that are invisible, or that change the direction of writing. */
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Number of characters of a long text that are shown first, and in each part of the rest. */
const FIRST = 20_000, PART = 50_000;

/** Returns `text` with signs in place of invisible characters. */
function visible(text) {
  return text.replaceAll('\r\n', '\n').replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return code === 127 ? '\u2421' : `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}

/** Creates an element. Keys that begin with `on` are listeners. */
function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : visible(String(value)));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}

/** Replaces the content of an element. */
function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Returns `text` as lines. Only the beginning of a long text is shown until the reader asks for the rest. */
function block(text, kind = '') {
  const box = h('pre', { class: `text ${kind}`, dir: 'auto' });
  if (text.length <= FIRST * 1.5) {
    append(box, [text]);
    return box;
  }
  const rest = h('button', { onclick: () => box.replaceChildren(...parts(text)) },
    `Show all ${number(text.length)} characters`);
  append(box, [text.slice(0, FIRST), '…\n', rest]);
  return box;
}

/** Cuts a huge text into parts, at line ends where there are some. The browser lays out only what is in view. */
function parts(text) {
  const spans = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + PART, text.length);
    const line = text.lastIndexOf('\n', end - 1);
    if (end < text.length && line > start) end = line + 1;
    else if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end -= 1;
    spans.push(h('span', { class: 'part' }, text.slice(start, end)));
    start = end;
  }
  return spans;
}

/** Returns a message with its parts between backticks as code. */
function marked(text) {
  return String(text).split(/`([^`\n]+)`/).map((part, at) => at % 2 === 1 ? h('code', {}, part) : part);
}

/** Number of lines and of characters above which a message is folded. */
const LONG = { lines: 16, characters: 1500 };

/** Returns `text` as lines. A long text is cut off on the screen until the reader asks for the rest. */
function folded(text, kind = '') {
  const box = block(text, kind);
  const count = text.split('\n').length;
  if (count <= LONG.lines && text.length <= LONG.characters) return box;
  box.classList.add('cut');
  const all = h('button', { class: 'unfold', 'aria-expanded': 'false', onclick: () => {
    const isCut = box.classList.toggle('cut');
    all.setAttribute('aria-expanded', String(!isCut));
    all.textContent = isCut ? wording : 'Show less';
  } });
  const wording = `Show all of the message, ${count > LONG.lines ? counted(count, 'line') : `${number(text.length)} characters`}`;
  all.textContent = wording;
  return [box, all];
}

/** Returns at most `most` characters of `text` on one line. */
function line(text, most = 160) {
  const folded = String(text).slice(0, most * 4).replace(/\s+/g, ' ').trim();
  return folded.length > most || text.length > most * 4 ? `${folded.slice(0, most)}…` : folded;
}

function number(value) {
  return Math.round(value).toLocaleString('en-US');
}

function money(usd) {
  return Math.abs(usd) >= 100 ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`;
}

function time(ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  const two = (value) => String(value).padStart(2, '0');
  return seconds < 3600 ? `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
    : `${Math.floor(seconds / 3600)}h${two(Math.floor(seconds % 3600 / 60))}m`;
}

/** Formats a moment to the second: `2026-11-21T21:48:00.123456789Z` as `2026-11-21 21:48:00 UTC`. */
function date(timestamp) {
  return `${timestamp.slice(0, 19).replace('T', ' ')} UTC`;
}

/** Formats a share as a percentage. Only everything is 100 %, and only nothing is 0 %. */
function percent(share) {
  const rounded = Math.round(share * 100);
  return `${share < 1 && rounded >= 100 ? 99 : share > 0 && rounded <= 0 ? 1 : rounded}%`;
}

function points(difference) {
  const value = difference * 100;
  const rounded = Math.abs(value) < 1 ? Math.round(value * 10) / 10 : Math.round(value);
  return rounded === 0 ? '0' : `${rounded > 0 ? '+' : '−'}${Math.abs(rounded)}`;
}

function signed(difference, format) {
  const amount = format(Math.abs(difference));
  return amount === format(0) ? amount : `${difference < 0 ? '−' : '+'}${amount}`;
}

function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Formats a value that may be unknown. */
function known(value, format) {
  return value === null || value === undefined ? 'n/a' : format(value);
}

/** Returns a value as text: a string unchanged, anything else as JSON. */
function asText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? 'undefined';
}

/** Announces something to screen readers, and shows it for a moment. */
function announce(text) {
  const status = document.getElementById('status');
  status.textContent = visible(text);
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => { status.textContent = ''; }, 4000);
}
