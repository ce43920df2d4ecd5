import pino from "pino";
import winston from "winston";
import { scenario } from "trialrun";

export default scenario("logging", async ({ agent, assert }) => {
  const lines: string[] = [];
  pino({}, { write: (line: string) => void lines.push(line) }).info("logged");
  const logger = winston.createLogger({ transports: [new winston.transports.Console()] });
  logger.info("to the console");
  assert.contains(await agent.send(JSON.parse(lines[0]).msg), "logged");
});
