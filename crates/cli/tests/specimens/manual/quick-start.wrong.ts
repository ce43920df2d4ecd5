// The same as a class; it never says hello.
export default class MyExecutor {
  async execute(context: { script: string; args: Record<string, unknown>; options: { model?: string } }) {
    const { args, options } = context;
    return {
      output: `${options.model ?? "nobody"} was asked: ${args.input}`,
      messages: [{ role: "user", content: args.input }],
    };
  }
}
