// In jest: a run that passes, and the failures.
const { agent, describeTrial, trial } = require("trialrun/jest");

const bot = agent({ costs: false, name: "bot" }, (message) => (message.includes("France") ? "Paris" : "I do not know."));
const prompt = "What is the capital of France?";
const settings = { agent: bot, expect: [{ contains: "Paris" }] };

describeTrial("knows the capital of France", { prompt, ...settings, trials: 2 });

test("matchers", async () => {
  await expect(await trial(prompt, settings)).toPassTrials();
  await expect({ name: "Ada" }).toMatchExpectation({ name: "/^A/" });
  await expect({ name: "Ada" }).not.toMatchExpectation({ name: "/^B/" });
  const run = await trial("What is the capital of Spain?", { agent: bot, expect: [{ contains: "Madrid" }] });
  await expect(expect(run).toPassTrials()).rejects.toThrow(/Madrid[^]*I do not know/);
});
