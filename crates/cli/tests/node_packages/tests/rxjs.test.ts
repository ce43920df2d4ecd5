import { firstValueFrom, from, map, reduce } from "rxjs";
import { produce } from "immer";
import { scenario } from "trialrun";

export default scenario("rxjs", async ({ agent, assert }) => {
  const sum = await firstValueFrom(from([1, 2, 3]).pipe(map((n) => n * 2), reduce((all, n) => all + n, 0)));
  const next = produce({ list: [sum] }, (draft) => void draft.list.push(1));
  assert.contains(await agent.send(next.list.join("+")), "12+1");
});
