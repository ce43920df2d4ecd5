// Finds the program for this platform.
"use strict";

const { accessSync, closeSync, constants, openSync, readSync, statSync } = require("node:fs");
const { delimiter, join } = require("node:path");

const name = `@trialrun/${process.platform}-${process.arch}`;

/**
 * Returns the path of the program: the one that the variable TRIALRUN_PROGRAM names, else the one of the package for this
 * platform, else one in PATH. Throws an error with an explanation if there is none.
 */
exports.program = function program() {
  if (process.env.TRIALRUN_PROGRAM) return process.env.TRIALRUN_PROGRAM;
  try {
    return require.resolve(`${name}/bin/trialrun`);
  } catch {
    const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
    const found = folders.map((folder) => join(folder, "trialrun")).find(isProgram);
    if (found) return found;
    const { optionalDependencies } = require("./package.json");
    const absent = name in optionalDependencies
      ? `the package ${name} is not installed. Install trialrun again without \`--omit=optional\` or \`--no-optional\`,`
        + " and on this platform, not on another one whose node_modules are copied. Or put"
      : `no package with the program for ${process.platform} on ${process.arch} is installed. Put`;
    throw new Error(`${absent} the program \`trialrun\` into PATH, or name it with TRIALRUN_PROGRAM.`);
  }
};

/** Returns true for a program, and false for the script of this package that starts one. */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    if (!statSync(path).isFile()) return false;
    const [file, start] = [openSync(path), Buffer.alloc(100)];
    readSync(file, start);
    closeSync(file);
    return !/^#!.*node/.test(start.toString());
  } catch {
    return false;
  }
}
