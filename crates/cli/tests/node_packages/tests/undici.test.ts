import { MockAgent, fetch } from "undici";
import { scenario } from "trialrun";

export default scenario("undici", async ({ agent, assert }) => {
  const mock = new MockAgent();
  mock.get("http://shop.test").intercept({ path: "/" }).reply(200, "mocked");
  const response = await fetch("http://shop.test/", { dispatcher: mock });
  assert.contains(await agent.send(await response.text()), "mocked");
});
