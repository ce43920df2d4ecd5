import { ChatPromptTemplate } from "@langchain/core/prompts";
import { RunnableLambda } from "@langchain/core/runnables";
import { scenario } from "trialrun";

export default scenario("langchain", async ({ agent, assert }) => {
  const chain = ChatPromptTemplate.fromTemplate("say {word}").pipe(RunnableLambda.from((prompt) => prompt.messages[0].content));
  assert.contains(await agent.send(String(await chain.invoke({ word: "chain" }))), "say chain");
});
