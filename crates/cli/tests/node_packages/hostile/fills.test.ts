import { scenario } from "trialrun";

// Needs more memory than a test has.
export default scenario("fills", { timeout: "2m" }, async ({ agent }) => {
  await agent.send("hi");
  const all = [];
  for (;;) all.push(new Array(1e6).fill(0.5));
});
