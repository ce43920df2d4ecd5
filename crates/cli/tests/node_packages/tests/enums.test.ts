import { Level, area } from "../src/shapes";
import { scenario } from "trialrun";

export default scenario("enums", async ({ agent, assert }) => {
  assert.contains(await agent.send(Level[Level.High] + area.square(3)), "High9");
});
