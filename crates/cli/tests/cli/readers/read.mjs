// Reads reports with packages of npm, and prints what they say as JSON: [name, outcome] of each test.
// Usage: node read.mjs PACKAGES JUNIT TAP CTRF
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, junit, tap, ctrf] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const text = (file) => readFileSync(file, 'utf8');

const { parse } = await load('junit2json');
const suites = await parse(text(junit));
const fromJunit = suites.testsuite.flatMap((suite) => suite.testcase ?? []).map((test) => [
  test.name, test.failure ? 'failed' : test.error ? 'broken' : test.skipped ? 'skipped' : 'passed',
]);

const { Parser } = await load('tap-parser');
const events = Parser.parse(text(tap));
const asserts = events.filter(([kind]) => kind === 'assert').map(([, assert]) => assert);
const complete = events.find(([kind]) => kind === 'complete')[1];
const fromTap = asserts.map((assert) => [assert.name, assert.skip ? 'skipped' : assert.todo ? 'todo' : assert.ok ? 'passed' : 'failed']);

const { default: Ajv } = await load('ajv/dist/2020.js');
const schema = JSON.parse(text(join(packages, 'node_modules/ctrf/dist/ctrf-schema-0.0.json')));
const { $schema: draft } = schema;
const { default: Draft7 } = await load('ajv');
const ajv = new (draft.includes('2020') ? Ajv : Draft7)({ strict: false, allErrors: true, validateFormats: false });
const report = JSON.parse(text(ctrf));
const isValid = ajv.validate(schema, report);

console.log(JSON.stringify({
  junit: fromJunit,
  tap: fromTap,
  tapPlan: [complete.plan.start, complete.plan.end],
  tapProblems: complete.failures.filter((failure) => failure.tapError).map((failure) => failure.tapError),
  ctrf: report.results.tests.map((test) => [test.name, test.status]),
  ctrfErrors: isValid ? [] : ajv.errors.map((error) => `${error.instancePath} ${error.message}`),
}));
