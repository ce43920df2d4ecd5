import { assert, scenario } from "trialrun";

export default scenario("keeps notes in its folder", async ({ agent }) => {
  const first = await agent.send("note: buy milk");
  assert.toolCalled(first, "write_note");
  assert.contains(first, "buy milk");

  // Check the file that the agent wrote, not only its answer.
  assert.fileContains(first, "notes.md", "- buy milk");

  const second = await agent.send("What did I note?");
  assert.contains(second, "buy milk");
  assert.notContains(second, "Nothing yet");
});
