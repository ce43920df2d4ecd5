import { render } from "preact-render-to-string";
import { h } from "preact";
import { scenario } from "trialrun";

export default scenario("preact", async ({ agent, assert }) => {
  assert.contains(await agent.send(render(h("p", { class: "x" }, "text"))), '<p class="x">text</p>');
});
