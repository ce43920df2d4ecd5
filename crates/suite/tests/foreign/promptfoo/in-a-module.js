const word = "hi";
export default {
  prompts: ["Say {{word}}."],
  providers: ["echo"],
  tests: [{ vars: { word }, assert: [{ type: "contains", value: word }] }],
};
