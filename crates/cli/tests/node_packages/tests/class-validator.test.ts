import "reflect-metadata";
import { plainToInstance } from "class-transformer";
import { validate } from "class-validator";
import { Order } from "../src/order";
import { scenario } from "trialrun";

export default scenario("class-validator", async ({ agent, assert }) => {
  const [problem] = await validate(plainToInstance(Order, { id: "x", count: 0 }));
  assert.contains(await agent.send(JSON.stringify(problem.constraints)), "count must not be less than 1");
});
