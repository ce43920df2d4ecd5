export default { test: { reporters: ["default", "trialrun/vitest-reporter"] } };
