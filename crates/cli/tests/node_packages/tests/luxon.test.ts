import { DateTime } from "luxon";
import { scenario } from "trialrun";

export default scenario("luxon", async ({ agent, assert }) => {
  const time = DateTime.fromISO("2026-03-01T12:00:00Z", { zone: "Europe/Berlin" });
  assert.contains(await agent.send(time.setLocale("fr").toLocaleString(DateTime.DATE_FULL)), "1 mars 2026");
  assert.custom("the zone", () => time.hour === 13);
});
