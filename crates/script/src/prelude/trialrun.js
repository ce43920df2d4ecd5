export { scenario, persona, assert, score, sleep, defineConfig } from 'trialrun:core';
