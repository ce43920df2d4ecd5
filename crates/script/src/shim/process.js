const { process } = globalThis;
export default process;
export const { env, argv, cwd, nextTick, exit, platform, version, versions } = process;
