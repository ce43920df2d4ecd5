import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("fetch", async ({ agent, assert }) => {
  const { url, close } = await answering(() => ({ said: "by fetch" }));
  const response = await fetch(url);
  const { said } = (await response.json()) as { said: string };
  close();
  assert.contains(await agent.send(said), "by fetch");
});
