#!/usr/bin/env node
// Starts the program for this platform, and ends in the same way: with its exit code, or by its signal.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@trialrun/${process.platform}-${process.arch}`;

/** Returns the path of the program, or ends with an explanation. */
function program() {
  if (process.env.TRIALRUN_PROGRAM) return process.env.TRIALRUN_PROGRAM;
  try {
    return require.resolve(`${name}/bin/trialrun`);
  } catch {
    const { optionalDependencies } = require("../package.json");
    fail(name in optionalDependencies
      ? `the package ${name} is not installed. Install trialrun again without \`--omit=optional\` or \`--no-optional\`,`
        + " and on this platform, not on another one whose node_modules are copied."
      : `there is no program for ${process.platform} on ${process.arch}. Build trialrun from source, and name the program`
        + " with TRIALRUN_PROGRAM.");
  }
}

function fail(message) {
  console.error(`trialrun: ${message}`);
  process.exit(3);
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`could not start the program: ${error.message}`));

// A terminal also sends these signals to the program. It must not get them twice: the second one ends it at once.
const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM"]) {
  process.on(signal, () => {
    if (!onTerminal || !["SIGINT", "SIGHUP", "SIGQUIT"].includes(signal)) child.kill(signal);
  });
}

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Some signals do not end Node.js. A shell reports them like this.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
});
