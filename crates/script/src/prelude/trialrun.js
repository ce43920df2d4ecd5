export { scenario, persona, assert, score, sleep, defineConfig, AgentResponse } from 'trialrun:core';
