import Handlebars from "handlebars";
import { marked } from "marked";
import { scenario } from "trialrun";

export default scenario("markup", async ({ agent, assert }) => {
  const page = await marked.parse(Handlebars.compile("# {{title}}")({ title: "Hi" }));
  assert.contains(await agent.send(page), "<h1>Hi</h1>");
});
