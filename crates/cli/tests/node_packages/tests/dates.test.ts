import { formatDistance } from "date-fns";
import dayjs from "dayjs";
import utc from "dayjs/plugin/utc.js";
import { scenario } from "trialrun";

export default scenario("dates", async ({ agent, assert }) => {
  dayjs.extend(utc);
  const begun = dayjs.utc("2026-01-01");
  assert.contains(await agent.send(formatDistance(begun.toDate(), begun.add(3, "day").toDate())), "3 days");
});
