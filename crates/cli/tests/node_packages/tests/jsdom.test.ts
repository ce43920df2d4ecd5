import { JSDOM } from "jsdom";
import { scenario } from "trialrun";

export default scenario("jsdom", async ({ agent, assert }) => {
  const { document } = new JSDOM("<p id=a>text</p><script>document.title = 'x'</script>").window;
  assert.contains(await agent.send(document.querySelector("#a")!.textContent!), "text");
});
