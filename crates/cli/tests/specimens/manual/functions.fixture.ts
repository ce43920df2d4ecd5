// 1.3 Custom validation functions, and functions elsewhere in an expectation.
interface Item {
  score: number;
  name: string;
}

export default [
  {
    title: "a function is asked",
    input: "Write something.",
    expect: {
      output: (actual: string, input: string) => actual.length > 10 || "Output is too short",
    },
  },
  {
    title: "a function sees the input",
    input: { words: 3 },
    output: (actual: string, input: { words: number }) => actual.split(" ").length === input.words,
  },
  {
    title: "a function takes its time",
    input: "Write something.",
    output: async (actual: string) => (await Promise.resolve(actual)).startsWith("A"),
  },
  {
    title: "a function to sort by",
    input: "Rank them.",
    output: {
      $sort: {
        $by: (item: Item, index: number, all: Item[]) => item.score / all.length,
        $first: { name: /^last/ },
      },
    },
  },
  {
    title: "a function as an operator",
    input: "Count.",
    operators: { $even: (actual: number) => actual % 2 === 0 || `${actual} is odd` },
    output: { count: { $even: true } },
  },
];
