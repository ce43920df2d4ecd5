import got from "got";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("got", async ({ agent, assert }) => {
  const { url, close } = await answering(() => ({ said: "by got" }));
  const { said } = await got(url).json<{ said: string }>();
  close();
  assert.contains(await agent.send(said), "by got");
});
