module.exports = {
  prompts: ["Say {{word}}."],
  providers: ["echo"],
  tests: [{ vars: { word: "hi" }, assert: [{ type: "javascript", value: (output) => output.length > 2 }] }],
};
