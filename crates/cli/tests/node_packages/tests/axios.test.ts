import axios from "axios";
import { answering } from "../src/server";
import { scenario } from "trialrun";

export default scenario("axios", async ({ agent, assert }) => {
  const { url, close } = await answering(({ body }) => ({ said: body.text }));
  const { data } = await axios.post(url, { text: "by axios" });
  close();
  assert.contains(await agent.send(data.said), "by axios");
});
