const after = (wait, value) => new Promise((resolve) => setTimeout(resolve, wait, value));
export { after as setTimeout };
export const setImmediate = (value) => Promise.resolve(value);
export const scheduler = { wait: after, yield: () => Promise.resolve() };
export default { setTimeout: after, setImmediate, scheduler };
