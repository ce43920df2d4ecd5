export default async (context) => ({ output: { script: "another", args: Object.keys(context.args) } });
