import { shout } from "@/shout";
import { twice } from "#twice";
import { scenario } from "trialrun";

export default scenario("paths", async ({ agent, assert }) => {
  assert.contains(await agent.send(twice(shout("alias"))), "ALIASALIAS");
});
