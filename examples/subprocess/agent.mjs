// A small agent that is a program: it reads a line of JSON for each message and writes a line of JSON for each answer. It
// keeps notes in its working directory, which is the trial's sandbox.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const NOTES = "notes.md";

function answer(message) {
  const note = message.match(/^note:\s*(.+)$/i)?.[1];
  if (note) {
    appendFileSync(NOTES, `- ${note}\n`);
    return {
      message: `Noted: ${note}.`,
      tool_calls: [{ name: "write_note", arguments: { text: note }, result: "ok" }],
    };
  }
  if (/what did i note/i.test(message)) {
    const notes = existsSync(NOTES) ? readFileSync(NOTES, "utf8") : "";
    return { message: notes ? `You noted:\n${notes}` : "Nothing yet." };
  }
  return { message: "Write `note: something`, or ask what you noted." };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(answer(JSON.parse(line).message)));
}
