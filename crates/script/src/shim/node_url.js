export const { URL, URLSearchParams } = globalThis;
export function fileURLToPath(url) {
  const { protocol, pathname } = typeof url === 'string' ? new URL(url) : url;
  if (protocol !== 'file:') throw new TypeError('The URL must be of scheme file');
  return decodeURIComponent(pathname);
}
export function pathToFileURL(path) {
  return new URL(`file://${encodeURI(String(path)).replace(/[?#]/g, encodeURIComponent)}`);
}
export default { URL, URLSearchParams, fileURLToPath, pathToFileURL };
