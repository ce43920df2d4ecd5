// Returns the configuration unchanged, so that editors can complete its keys.
export const defineConfig = (config) => config;
