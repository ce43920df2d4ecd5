import "reflect-metadata";
import { Shop } from "../src/shop";
import { scenario } from "trialrun";

export default scenario("decorators", async ({ agent, assert }) => {
  const shop = new Shop();
  assert.contains(await agent.send(shop.open("door")), "decorated door");
  assert.custom("metadata", () => Reflect.getMetadata("design:paramtypes", shop, "open")[0] === String);
});
