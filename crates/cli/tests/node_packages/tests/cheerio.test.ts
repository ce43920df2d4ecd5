import * as cheerio from "cheerio";
import { scenario } from "trialrun";

export default scenario("cheerio", async ({ agent, assert }) => {
  const page = cheerio.load("<ul><li class=a>one</li><li>two</li></ul>");
  assert.contains(await agent.send(page("li.a").text() + page("li").length), "one2");
});
