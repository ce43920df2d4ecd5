// Reads a text from the pipe, one line with a string in JSON, and runs it as a function.
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

const bytes = [];
const byte = Buffer.alloc(1);
while (fs.readSync(3, byte) === 1 && byte[0] !== 10) bytes.push(byte[0]);
const text = JSON.parse(Buffer.from(bytes).toString());
const run = vm.compileFunction(text, ['node', 'load', 'resolve'], { filename: 'internal:node' });
run({ decoder, fs, module, net, path, threads, url, vm }, (specifier) => import(specifier), import.meta.resolve);
