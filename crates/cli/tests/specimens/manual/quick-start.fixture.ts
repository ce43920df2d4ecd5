// Quick start: fixtures for a script, as a module, so that a regular expression is one.
export const config = { script: "my-script-id" };

export default [
  {
    title: "says hello",
    input: "Hi",
    expect: {
      output: /Hello/i,
    },
  },
];
