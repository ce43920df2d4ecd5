#!/usr/bin/env node
// Starts the program for this platform, and ends in the same way: with its exit code, or by its signal.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const { program } = require("../program.js");

function fail(message) {
  console.error(`trialrun: ${message}`);
  process.exit(3);
}

let path;
try {
  path = program();
} catch (error) {
  fail(error.message);
}
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
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
