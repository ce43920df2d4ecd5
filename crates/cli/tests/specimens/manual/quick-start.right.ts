// An executor: what stands between the fixtures and the model.
interface Context {
  script: string;
  args: Record<string, unknown>;
}

const myExecutor = {
  async execute({ script, args }: Context) {
    // Connect to your AI logic here.
    return { output: "Hello World", messages: [] };
  },
};

export default myExecutor;
