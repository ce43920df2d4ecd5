import { once } from "node:events";
import { createServer } from "node:http";

interface Asked {
  path: string;
  headers: Record<string, unknown>;
  body: any;
}

/** Starts a server that answers every request with the result of `answer`. */
export async function answering(answer: (asked: Asked) => unknown, type = "application/json") {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const asked = { path: request.url ?? "", headers: request.headers, body: text === "" ? undefined : JSON.parse(text) };
    const given = answer(asked);
    response.setHeader("content-type", type);
    response.end(typeof given === "string" ? given : JSON.stringify(given));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}
