
import { scenario } from "trialrun";

export default scenario("locales", async ({ agent, assert }) => {
  const money = new Intl.NumberFormat("de-DE", { style: "currency", currency: "EUR" }).format(1234.5);
  assert.contains(await agent.send(money.replace("\u00a0", " ")), "1.234,50 €");
  assert.custom("collation", () => ["z", "ä", "a"].sort(new Intl.Collator("de").compare).join("") === "aäz");
});
