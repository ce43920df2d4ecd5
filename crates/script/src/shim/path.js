// Paths with slashes.
const text = (value, name) => {
  if (typeof value !== 'string') throw new TypeError(`The "${name}" argument must be of type string`);
  return value;
};
const tidy = (path, absolute) => {
  const parts = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (!absolute) parts.push('..');
  }
  return parts.join('/');
};
export const sep = '/';
export const delimiter = ':';
export const isAbsolute = (path) => text(path, 'path').startsWith('/');
export function normalize(path) {
  text(path, 'path');
  if (path === '') return '.';
  const absolute = isAbsolute(path);
  let tidied = tidy(path, absolute);
  if (tidied === '' && !absolute) tidied = '.';
  if (tidied !== '' && path.endsWith('/')) tidied += '/';
  return absolute ? `/${tidied}` : tidied;
}
export function join(...parts) {
  const joined = parts.filter((part) => text(part, 'path') !== '').join('/');
  return joined === '' ? '.' : normalize(joined);
}
export function resolve(...parts) {
  let path = '';
  for (const part of [process.cwd(), ...parts]) {
    if (text(part, 'path') === '') continue;
    path = isAbsolute(part) ? part : `${path}/${part}`;
  }
  return `/${tidy(path, true)}`;
}
export function relative(from, to) {
  const start = resolve(from).split('/').filter(Boolean);
  const end = resolve(to).split('/').filter(Boolean);
  let shared = 0;
  while (shared < start.length && shared < end.length && start[shared] === end[shared]) shared += 1;
  return [...start.slice(shared).map(() => '..'), ...end.slice(shared)].join('/');
}
export function dirname(path) {
  const trimmed = text(path, 'path').replace(/\/+$/, '');
  const cut = trimmed.lastIndexOf('/');
  if (cut < 0) return path.startsWith('/') ? '/' : '.';
  return trimmed.slice(0, cut).replace(/\/+$/, '') || '/';
}
export function basename(path, suffix = '') {
  const name = text(path, 'path').replace(/\/+$/, '').split('/').at(-1);
  return suffix !== '' && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}
export function extname(path) {
  const name = basename(path);
  const dot = name.lastIndexOf('.');
  return dot <= 0 ? '' : name.slice(dot);
}
export function parse(path) {
  const root = isAbsolute(path) ? '/' : '';
  const base = basename(path);
  const ext = extname(path);
  const directory = dirname(path);
  const dir = directory === '.' && !path.startsWith('.') ? '' : directory;
  return { root, dir, base, ext, name: ext === '' ? base : base.slice(0, -ext.length) };
}
export function format({ root = '', dir, base, name = '', ext = '' }) {
  const file = base ?? name + (ext === '' || ext.startsWith('.') ? ext : `.${ext}`);
  const directory = dir ?? root;
  return directory === '' ? file : directory === root ? directory + file : `${directory}/${file}`;
}
export const posix = {
  sep, delimiter, isAbsolute, normalize, join, resolve, relative, dirname, basename, extname, parse, format,
};
posix.posix = posix;
export default posix;
