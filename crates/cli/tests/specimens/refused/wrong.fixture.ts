// The same for a module.
export const config = {
  strict: "strange",
  operators: { $missing: "./good.js#absent", $reads: "./files.js#read", $five: 5 },
};

interface Fixture {
  output?: unknown;
  [variable: string]: unknown;
}

const fixtures: (Fixture | string)[] = [
  { title: 5, output: "a" },
  "just text",
  { output: { $contians: "a" } },
  { output: { $and: ["a"], $strategy: "best" } },
  { output: { $sort: { $by: () => 1, $first: { $in: "admin" } } } },
  { output: { n: NaN } },
  { output: "/(/" },
  { output: { $schema: { type: "strnig" } } },
  { output: "{{ nmae }}", name: "Alice" },
  { output: "{{ a }}", a: "{{ b }}", b: "{{ a }}" },
  { output: { $expr: "actual >" } },
];

export default fixtures;
