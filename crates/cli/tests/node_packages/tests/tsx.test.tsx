import { renderToStaticMarkup } from "react-dom/server";
import { Card } from "../src/card";
import { scenario } from "trialrun";

export default scenario("tsx", async ({ agent, assert }) => {
  const page = renderToStaticMarkup(<Card title="hi"><b>there</b></Card>);
  assert.contains(await agent.send(page), "<section><h1>hi</h1><b>there</b></section>");
});
