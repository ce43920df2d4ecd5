import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scenario } from "trialrun";

export default scenario("files", async ({ agent, assert }) => {
  const file = join(await mkdtemp(join(tmpdir(), "files-")), "a.txt");
  await writeFile(file, "written");
  assert.contains(await agent.send(await readFile(file, "utf8")), "written");
});
