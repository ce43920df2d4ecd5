interface Test { vars: Record<string, string> }
const tests: Test[] = [{ vars: { word: "hi" } }];
export default { prompts: ["Say {{word}}."], providers: ["echo"], tests };
