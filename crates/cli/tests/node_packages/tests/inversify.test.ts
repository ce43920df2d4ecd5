import "reflect-metadata";
import { Container } from "inversify";
import { Service, Store } from "../src/service";
import { scenario } from "trialrun";

export default scenario("inversify", async ({ agent, assert }) => {
  const container = new Container();
  container.bind(Store).toSelf();
  container.bind(Service).toSelf();
  assert.contains(await agent.send(container.get(Service).find()), "found by the store");
});
