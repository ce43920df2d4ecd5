import { parse } from "csv-parse/sync";
import { scenario } from "trialrun";

export default scenario("csv", async ({ agent, assert }) => {
  const rows = parse("name,age\nada,36\n", { columns: true }) as { name: string; age: string }[];
  assert.contains(await agent.send(`${rows[0].name} is ${rows[0].age}`), "ada is 36");
});
