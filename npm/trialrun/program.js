// Finds the program for this platform.
"use strict";

const name = `@trialrun/${process.platform}-${process.arch}`;

/** Returns the path of the program. Throws an error with an explanation if it is not installed. */
exports.program = function program() {
  if (process.env.TRIALRUN_PROGRAM) return process.env.TRIALRUN_PROGRAM;
  try {
    return require.resolve(`${name}/bin/trialrun`);
  } catch {
    const { optionalDependencies } = require("./package.json");
    throw new Error(name in optionalDependencies
      ? `the package ${name} is not installed. Install trialrun again without \`--omit=optional\` or \`--no-optional\`,`
        + " and on this platform, not on another one whose node_modules are copied."
      : `there is no program for ${process.platform} on ${process.arch}. Build trialrun from source, and name the program`
        + " with TRIALRUN_PROGRAM.");
  }
};
