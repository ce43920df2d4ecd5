// Reads a text from the pipe, one line with a string in JSON, and runs it as a function.
import console from 'node:console';
import fs from 'node:fs';
import module from 'node:module';
import net from 'node:net';
import path from 'node:path';
import decoder from 'node:string_decoder';
import url from 'node:url';
import vm from 'node:vm';
import threads from 'node:worker_threads';

// What this text and the other one use is not the user's concern.
const { emitWarning } = process;
process.emitWarning = (warning, ...rest) => {
  const isOwn = rest[0] === 'ExperimentalWarning' && /VM Modules|import\.meta\.resolve/.test(String(warning));
  if (!isOwn) emitWarning.call(process, warning, ...rest);
};
delete process.env.BUN_JSC_useTailCalls;

// The pipes to and from the program. The standard streams belong to the user's code. Deno has numbers of its own for files.
const isDeno = process.versions.deno !== undefined;
const input = isDeno ? fs.openSync('/dev/fd/3') : 3;
const output = isDeno ? fs.openSync('/dev/fd/4', 'w') : 4;

const read = [];
let begun;
const bytes = Buffer.alloc(1 << 16);
let end = -1;
while (end < 0) {
  const length = fs.readSync(input, bytes);
  if (length === 0) process.exit(0);
  end = bytes.subarray(0, length).indexOf(10);
  read.push(Buffer.from(bytes.subarray(0, end < 0 ? length : end)));
  if (end >= 0) begun = Buffer.from(bytes.subarray(end + 1, length));
}
const text = JSON.parse(Buffer.concat(read).toString());
const run = vm.compileFunction(text, ['node', 'load', 'resolve', 'output', 'begun'], { filename: 'internal:modules' });
// `import.meta.resolve` of Deno resolves only for the module itself.
const resolve = isDeno ? undefined : import.meta.resolve;
run({ console, decoder, fs, module, net, path, threads, url, vm }, (specifier) => import(specifier), resolve, output, begun);
