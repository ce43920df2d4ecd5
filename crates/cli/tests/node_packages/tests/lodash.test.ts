import { groupBy } from "lodash-es";
import _ from "lodash";
import { scenario } from "trialrun";

export default scenario("lodash", async ({ agent, assert }) => {
  const groups = groupBy(["one", "two", "three"], "length");
  assert.contains(await agent.send(_.kebabCase(groups[3].join(" And "))), "one-and-two");
});
