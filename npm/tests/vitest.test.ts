// In vitest: the types, a run that passes, and the failures.
import { expect, test } from "vitest";
import { agent, describeTrial, trial, type Answer } from "trialrun/vitest";

const bot = agent({ costs: false }, async function bot(message): Promise<Answer> {
  return { text: message.includes("France") ? "Paris" : "I do not know.", tool_calls: [] };
});
const prompt = "What is the capital of France?";
const settings = { agent: bot, expect: [{ contains: "Paris" }] };

describeTrial("knows the capital of France", { prompt, ...settings, trials: 2 });

test("a run and an agent pass trials", async () => {
  await expect(await trial(prompt, settings)).toPassTrials();
  await expect(bot).toPassTrials({ prompt, expect: settings.expect });
  await expect({ name: "Ada", tags: ["new"] }).toMatchExpectation({ name: "/^A/", tags: { $contains: "new" } });
  await expect({ name: "Ada" }).not.toMatchExpectation({ name: "/^B/" });
});

test("a failure shows the findings", async () => {
  const run = await trial("What is the capital of Spain?", { agent: bot, expect: [{ contains: "Madrid" }] });
  await expect(expect(run).toPassTrials()).rejects.toThrow(/Madrid[^]*I do not know/);
  await expect(expect("a").toMatchExpectation("/b/")).rejects.toThrow(/does not match/);
});
