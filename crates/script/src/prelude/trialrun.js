export { scenario, persona, assert, score, secret, sleep, defineConfig, AgentResponse } from 'trialrun:core';
