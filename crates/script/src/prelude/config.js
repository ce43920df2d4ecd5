// The configuration as it is; an editor knows its keys.
export const defineConfig = (config) => config;
