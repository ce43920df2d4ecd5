mod played;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agent::Configured;
use jiff::Timestamp;
use model::{Case, Code, Event, Excerpt, Finding, FixtureFile, Outcome, RunInfo, Status, Suite, TrialRecord};
use sandbox::Host;
use serde_json::json;
use tokio::sync::mpsc;

use crate::Control;
use crate::event_bus::EventLog;
use crate::plan::{PlanRequest, ReadScript, Settings, plan};
use crate::select::Selection;
use sandbox::supervise::Supervisor;

/// A folder of modules and the cases in them.
struct Play {
    folder: tempfile::TempDir,
    suites: Vec<Suite>,
    settings: Settings,
    read_script: ReadScript,
    /// `true` if planning may report warnings.
    may_warn: bool,
}

impl Play {
    fn new() -> Self {
        let mut settings = Settings { jobs: 8, ..Settings::default() };
        settings.arms.agents = vec!["fake".into()];
        settings.retry.retries = 0;
        Self {
            folder: tempfile::tempdir().unwrap(),
            suites: Vec::new(),
            settings,
            read_script: Arc::new(|_: &Path| Err(Vec::new())),
            may_warn: false,
        }
    }

    fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.folder.path().canonicalize().unwrap().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Adds a module called `name.test.ts` whose only scenario, called `name`, runs `body`.
    fn scenario(mut self, name: &str, body: &str) -> Self {
        self = self.with(name, body, |case| case);
        self
    }

    fn with(mut self, name: &str, body: &str, change: impl FnOnce(Case) -> Case) -> Self {
        let text = format!(
            "import {{ scenario, persona, assert }} from '@fabrik/core';\nexport default scenario('{name}', async ({{ agent, agents, score, scores }}) => {{\n{body}\n}});\n"
        );
        let file = format!("{name}.test.ts");
        let module = self.write(&file, &text);
        let code = Code { module: module.clone(), scenario: 0, name: name.to_owned(), claims: Vec::new() };
        let case = change(Case { code: Some(code.into()), ..Case::new(name, Excerpt::of_file(file.as_str())) });
        self.suites.push(Suite { name: name.to_owned(), path: module, format: "code", cases: vec![Arc::new(case)] });
        self
    }

    /// Runs everything and returns the records in the order of the plan.
    async fn run(self) -> Vec<TrialRecord> {
        let (_stop, controls) = mpsc::unbounded_channel();
        self.run_until(controls).await
    }

    async fn run_until(self, controls: mpsc::UnboundedReceiver<Control>) -> Vec<TrialRecord> {
        let request = PlanRequest {
            suites: &self.suites,
            settings: &self.settings,
            selection: &Selection::default(),
            cwd: self.folder.path(),
            read_script: Arc::clone(&self.read_script),
            modules: script::Library::new(),
        };
        let (plan, problems) = plan(&request);
        assert!(problems.iter().all(|problem| self.may_warn && !problem.is_error()), "{problems:?}");
        let order: Vec<String> = plan.trials.iter().map(|trial| trial.id().to_string()).collect();
        let host = Host {
            env: BTreeMap::new(),
            home: None,
            temp: self.folder.path().join("tmp"),
            supervisor: Supervisor::unchecked("/none").unwrap(),
        };
        std::fs::create_dir_all(&host.temp).unwrap();
        let info = RunInfo {
            id: "run".into(),
            label: None,
            regrade_of: None,
            started_at: Timestamp::now(),
            trialrun_version: "0".into(),
            settings: serde_json::Map::new(),
            agents: Vec::new(),
            skills: Vec::new(),
            trials: Vec::new(),
            decisions: 0,
            jobs: 8,
            invocation: None,
            origin: None,
            shard: None,
            missing_shards: None,
            isolation: None,
        };
        let events = EventLog::up_to(usize::MAX);
        crate::run(plan, Arc::new(host), info, controls, events.clone()).await.unwrap();
        let mut records: Vec<TrialRecord> = events
            .take()
            .into_iter()
            .filter_map(|entry| match entry.event {
                Event::TrialFinished(record) => Some(*record),
                _ => None,
            })
            .collect();
        records.sort_by_key(|record| order.iter().position(|id| **id == *record.id));
        records
    }
}

async fn played(body: &str) -> TrialRecord {
    Play::new().scenario("x", body).run().await.remove(0)
}

/// Returns `id status: reason` for each finding that is not implicit.
fn describe(record: &TrialRecord) -> Vec<String> {
    let describe = |finding: &Finding| {
        let status = match finding.status {
            Status::Met => "met",
            Status::Unmet => "unmet",
            Status::Undecided => "undecided",
        };
        format!("{} {status}: {}", finding.id, finding.reason)
    };
    record.findings.iter().filter(|finding| !finding.implicit).map(describe).collect()
}

fn line(finding: &Finding) -> (usize, String) {
    let source = finding.source.as_ref().unwrap();
    let underlined: String = source.text.chars().skip(source.column - 1).take(source.length).collect();
    (source.line, underlined)
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_of_a_scenario_are_in_order_with_their_lines() {
    let record = played(
        "  const karen = persona({ role: 'customer' });
  const r = await agent.send(karen.says('hello World'));
  assert.contains(r, 'world', { weight: 3 });
  const result = await assert.notContains(r, 'World');
  if (result.passed !== false || result.type !== 'not_contains') throw new Error(JSON.stringify(result));
  assert.custom('is short', (it) => it.text.length < 5, r);
  const again = await agent.send('!call Bash {\"command\": \"ls\"} => a.txt\\nsecond');
  if (again.toolCalls[0].result !== 'a.txt') throw new Error(JSON.stringify(again));
  assert.toolCalled(again, 'Bash', { command: '^ls' });
  assert.toolCalled(r, 'Bash');
  assert.contains(again, 'second', { id: 'mine', title: 'the second' });
  score('quality', 0.75);",
    )
    .await;
    assert_eq!(
        describe(&record).iter().map(|finding| finding.split(':').next().unwrap()).collect::<Vec<_>>(),
        [
            "contains-1 met",
            "not_contains-1 unmet",
            "custom-1 unmet",
            "tool_called-1 met",
            "tool_called-2 unmet",
            "mine met"
        ]
    );
    assert_eq!((record.outcome, record.scores["quality"]), (Outcome::Failed, 0.75));
    assert_eq!(record.input, ["hello World", "!call Bash {\"command\": \"ls\"} => a.txt\nsecond"]);
    assert_eq!((record.score, record.max_score), (Some(5.0 / 8.0), Some(1.0)));
    assert_eq!(line(&record.findings[0]), (5, "'world'".into()));
    assert_eq!(line(&record.findings[1]), (6, "'World'".into()));
    assert_eq!(line(&record.findings[2]), (8, "assert.custom".into()));
    assert_eq!(record.findings[2].title.as_deref(), Some("is short"));
    assert_eq!(record.findings[2].claim, model::Claim::Observed);
    assert_eq!(record.findings[0].claim, model::Claim::Declared);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_fails_at_its_line_and_earlier_assertions_count() {
    let record = played(
        "  const r = await agent.send('hello');
  assert.contains(r, 'hello');
  assert.custom('never ends', () => new Promise(() => {}));
  (r as any).raw.there;
  assert.contains(r, 'not reached');",
    )
    .await;
    assert_eq!(record.outcome, Outcome::Failed);
    let findings = describe(&record);
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert!(
        findings[0].starts_with("contains-1 met") && findings[1] == "custom-1 undecided: it did not finish",
        "{findings:?}"
    );
    assert_eq!(findings[2], "scenario unmet: TypeError: cannot read property 'there' of undefined");
    assert_eq!(line(&record.findings[2]).0, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_in_unawaited_promises_are_reported() {
    let record =
        played("  await agent.send('x');\n  assert.custom('a', () => true);\n  Promise.reject(new Error('unseen'));")
            .await;
    assert_eq!(record.outcome, Outcome::Failed);
    assert_eq!(record.findings.iter().filter(|finding| finding.kind == "scenario").count(), 1);
    let finding = record.findings.iter().find(|finding| finding.kind == "scenario").unwrap();
    assert_eq!((finding.reason.as_str(), line(finding).0), ("Error: unseen", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undefined_name_is_an_error_in_the_test_not_a_failure_of_the_agent() {
    for (line, help) in [
        ("expectReply('x');", "define `expectReply`, or import it"),
        ("sleep(1);", "`import { sleep } from 'trialrun'`"),
        ("require('fs');", "this file is an ECMAScript module"),
        ("describe('x', () => {});", "it belongs to another test runner; write `export default scenario("),
        ("exports.x = 1;", "modules are imported by `import … from '…'`"),
        ("process.exit(1);", "a script cannot act on the program"),
        (
            "new Intl.NumberFormat('de');",
            "`toISOString`; `code: {runtime: node}` in the configuration runs code in Node.js",
        ),
    ] {
        let record = played(&format!("  await agent.send('hello');\n  {line}")).await;
        assert_eq!((record.outcome, record.fault), (Outcome::Broken, Some(model::Fault::Test)), "{record:#?}");
        let reason = record.reason.unwrap();
        assert!(reason.contains("x.test.ts:4:") && reason.contains("ReferenceError"), "{reason}");
        assert!(reason.contains(help), "{reason}");
        assert_eq!(record.attempts.len(), 1, "a retry would give the same result");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_no_answer_can_cause_are_mistakes_in_the_test() {
    for (body, wrong) in [
        ("  const it: any = undefined;\n  it.there;", "x.test.ts:4:3: TypeError"),
        ("  throw new Error('set X first');", "x.test.ts:3:9: Error: set X first"),
        (
            "  await agent.send('a');\n  await (agent as any).sned('b');",
            "`agent` has no `sned`; it has name, model, send",
        ),
        (
            "  const r: any = await agent.send('a');\n  if (r.txt !== 'a') assert.contains(r, 'b');",
            "`reply` has no `txt`; it has text, toolCalls, latencyMs",
        ),
        ("  await agent.send('a');\n  await (agent.files as any).raed('b');", "`agent.files` has no `raed`"),
        (
            "  const r = await agent.send('a');\n  assert.custom('c', () => nothing > 1, r);",
            "x.test.ts:4:28: ReferenceError",
        ),
        ("  await agent.send('a');\n  await new Promise(() => {});", "a promise that is never settled"),
        (
            "  const r = await agent.send('a');\n  await crypto.subtle.digest('SHA-256', r.text);",
            "crypto.subtle.digest is not available here",
        ),
        ("  await agent.send('a');\n  process.binding('fs');", "process.binding is not available here"),
        (
            "  const r = await agent.send('a');\n  assert.custom('c', async () => (await import('node:fs')) !== r, r);",
            "node:fs is not available here",
        ),
        (
            "  const r = await agent.send('a');\n  const { subtle } = crypto;\n  assert.custom('c', () => subtle.sign(r), r);",
            "crypto.subtle.sign is not available here",
        ),
        (
            "  await agent.send('a');\n  (5).toLocaleString('fr-FR');",
            "toLocaleString with this locale, these options or this value is not available here",
        ),
        (
            "  const { text } = agent.send('a') as any;\n  assert.custom('c', () => text !== 'b');",
            "x.test.ts:3:26: ReferenceError: `text` is read from the promise of `agent.send`, which needs `await`",
        ),
        (
            "  const say = (m: string): any => agent.send(m);\n  const r = say('a');\n  assert.custom('c', () => r.text !== 'b');",
            "x.test.ts:3:46: ReferenceError: `text` is read from the promise of `agent.send`",
        ),
        (
            "  await agent.send('a');\n  const key = 'passed';\n  const c: any = assert.custom('c', () => true);\n  if (c[key]);",
            "`passed` is read from the promise of `assert.custom`",
        ),
        (
            "  await agent.send('a');\n  assert.custom('c', () => new Array(5e7).fill(0).length > 1);",
            "x.test.ts:4:43: the scenario needed more than 128 MiB of memory; `code: {runtime: node}`",
        ),
        (
            "  await agent.send('a');\n  assert.custom('c', () => new TextDecoder('latin1').encoding === '');",
            "TextDecoder for latin1 is not available here",
        ),
        (
            "  await agent.send('a');\n  assert.custom('c', async () => new ((await import('node:buffer')) as any).Blob(['x']).size > 0);",
            "Blob of `node:buffer` is not available here",
        ),
        (
            "  await agent.send('a');\n  const { parse } = (await import('node:url')) as any;\n  parse('http://a');",
            "parse of `node:url` is not available here (not a function); `code: {runtime: node}` in the configuration",
        ),
        (
            "  await agent.send('a');\n  const read = agent.files.read;\n  await read('a');",
            "x.test.ts:5:9: Error: `agent.files` is not available here: the agent runs without a sandbox",
        ),
        (
            "  await agent.send('a');\n  assert.custom('c', async () => (await agent.run('ls')).exitCode === 0);",
            "`agent.run` is not available here: the agent runs without a sandbox",
        ),
        (
            "  await agent.send('a');\n  new Blob(['x']);",
            "Blob is not available here: the script engine does not have it; `code: {runtime: node}` in the configuration",
        ),
    ] {
        let record = played(body).await;
        assert_eq!((record.outcome, record.fault), (Outcome::Broken, Some(model::Fault::Test)), "{body}: {record:#?}");
        let reason = record.reason.unwrap();
        assert!(reason.contains(wrong), "{body}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_call_each_other_as_deeply_as_in_nodejs() {
    let body = "  const deep = (n: number): number => (n === 0 ? 0 : 1 + deep(n - 1));\n  assert.custom('c', () => deep(9000) === 9000);";
    let record = played(body).await;
    assert_eq!(record.outcome, Outcome::Passed, "{record:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_an_answer_may_have_caused_count_against_the_agent() {
    for body in [
        "  const r = await agent.send('a');\n  r.toolCalls[0].arguments;",
        "  const r = await agent.send('a');\n  JSON.parse(r.text);",
        "  const r = await agent.send('{}');\n  JSON.parse(r.text).items.map(String);",
        "  const r = await agent.send('a');\n  if (!r.text.includes('b')) throw new Error('no b');",
        "  const r = await agent.send('nothing');\n  eval(r.text + '.there.at');",
        "  const r = await agent.send('x'.repeat(2e6));\n  const a = [r];\n  for (;;) a.push(new Array(1000).fill(r.text));",
    ] {
        let record = played(body).await;
        assert_eq!((record.outcome, record.fault), (Outcome::Failed, None), "{body}: {record:#?}");
        let finding = record.findings.iter().find(|finding| finding.kind == "scenario").unwrap();
        let is_explained = finding.evidence.iter().any(|line| line.contains("the test has a mistake here"));
        assert_eq!(is_explained, finding.reason.starts_with("TypeError"), "{finding:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_gave_up_fails_whatever_its_scenario_does_afterwards() {
    let record = played("  await agent.send('!error no').catch(() => undefinedName);").await;
    assert_eq!((record.outcome, record.fault), (Outcome::Failed, None), "{record:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_loop_and_a_memory_bomb_stop_only_their_own_trials() {
    let started = std::time::Instant::now();
    let patient = |case: Case| Case { timeout_ms: Some(300), ..case };
    let play = Play::new()
        .with("loop", "  const r = await agent.send('hello');\n  assert.contains(r, 'hello');\n  for (;;) {}", patient)
        .with(
            "wait",
            "  assert.custom('a', () => true);\n  await new Promise((done) => setTimeout(done, 1e6));",
            patient,
        )
        .with("never", "  assert.custom('a', () => true);\n  await new Promise(() => {});", |case| case)
        .scenario("bomb", "  const a = [];\n  for (;;) a.push(new Array(1000).fill(0));")
        .scenario("good", "  assert.contains(await agent.send('hello'), 'hello');");
    let records = play.run().await;
    let outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
    use Outcome::{Broken, Failed, Passed};
    assert_eq!(outcomes, [Broken, Failed, Broken, Broken, Passed], "{records:#?}");
    let reason = |at: usize| records[at].reason.clone().unwrap();
    assert!(
        reason(0).ends_with(
            "loop.test.ts:5:3: the scenario was stopped after 0.3 s (`timeout` in the scenario): it was still running"
        ),
        "{}",
        reason(0)
    );
    assert!(describe(&records[0])[0].starts_with("contains-1 met"));
    let last = describe(&records[1]).pop().unwrap();
    assert!(last.ends_with("(`timeout` in the scenario): it waited for a timer"), "{last}");
    assert!(reason(2).contains("it waits for a promise that is never settled"), "{}", reason(2));
    assert!(reason(3).contains("the scenario needed more than 128 MiB of memory; `code: {"), "{}", reason(3));
    for record in [&records[0], &records[2], &records[3]] {
        assert_eq!(record.fault, Some(model::Fault::Test), "{record:#?}");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_custom_assertion_is_reported_with_its_line() {
    let record = played(
        "  await agent.send('hello');
  assert.custom('throws', () => {
    throw new RangeError('half-way');
  });",
    )
    .await;
    let finding = &record.findings[0];
    assert_eq!((finding.status, line(finding).0), (Status::Unmet, 4));
    let [thrown] = &finding.evidence[..] else { panic!("{finding:#?}") };
    assert!(thrown.starts_with("thrown at ") && thrown.ends_with("x.test.ts:5:11"), "{thrown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_without_a_claim_is_undecided() {
    let record = played("  await agent.send('hello');").await;
    assert_eq!(record.outcome, Outcome::Undecided);
    assert!(record.reason.unwrap().contains("nothing was checked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_gives_up_fails_the_trial_and_gets_no_more_messages() {
    let record = played(
        "  const r = await agent.send('hello');
  assert.contains(r, 'hello');
  const first = await agent.send('!error nothing works').catch((error) => error.message);
  const second = await agent.send('x').catch((error) => error.message);
  assert.custom('told', () => first.includes('nothing works') && second.startsWith('the agent has ended'));",
    )
    .await;
    assert_eq!(record.outcome, Outcome::Failed, "{record:#?}");
    assert_eq!(describe(&record).len(), 2, "{:?}", describe(&record));
    assert_eq!(record.findings[1].status, Status::Met, "{record:#?}");
    let uncaught = played("  await agent.send('!error nothing works');").await;
    assert_eq!(
        (uncaught.outcome, describe(&uncaught)),
        (Outcome::Failed, Vec::new()),
        "the agent's own finding says it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_agent_times_out_but_its_scenario_does_not() {
    let play = Play::new().with(
        "x",
        "  assert.custom('before', () => true);\n  await agent.send('!sleep 1h');\n  assert.custom('after', () => true);",
        |case| Case { timeout_ms: Some(200), ..case },
    );
    let record = play.run().await.remove(0);
    assert_eq!(record.outcome, Outcome::Failed);
    assert_eq!(describe(&record), ["custom-1 met: `before` holds"]);
    assert!(record.findings.iter().any(|finding| finding.kind == "time_budget"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_claim_is_undecided_with_a_reason() {
    let record = played(
        "  const r = await agent.send('hello');
  assert.contians(r, 'x');
  assert.contains(r);
  assert.contains(r, 'x', 'y');
  assert.latency(r, { mx: 5 });
  assert.matches(r, () => true);
  assert.fileExists('a.txt');
  assert.contains(agent.send('again'), 'x');",
    )
    .await;
    assert_eq!(record.outcome, Outcome::Undecided, "{:#?}", describe(&record));
    assert!(
        record.findings.iter().filter(|finding| !finding.implicit).all(|finding| finding.status == Status::Undecided)
    );
    let findings = describe(&record);
    assert_eq!(findings.len(), 7, "{findings:#?}");
    assert_eq!(record.findings[0].evidence, ["did you mean `assert.contains`?"]);
    assert_eq!(line(&record.findings[0]), (4, "assert.contians".into()));
    assert!(findings[4].contains("does not accept a function"), "{findings:#?}");
    assert!(findings[5].contains("the agent runs without one"), "{findings:#?}");
    assert!(findings[6].contains("await agent.send"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_not_reported_prove_nothing() {
    let (silent, none) = (r#""output":"Done.""#, r#""output":"Done.","tool_calls":[]"#);
    let cut = r#""output":"Done.","tool_calls":[{"function":{"name":"find","arguments":"{\"q\":"}}]"#;
    let cases = [
        ("silent", silent, "r.toolCalls.length === 0", Outcome::Undecided),
        ("missing", silent, "r.toolCalls.some((call) => call.name === 'find')", Outcome::Failed),
        ("text", silent, "r.mentions('done')", Outcome::Passed),
        ("none", none, "r.toolCalls.length === 0", Outcome::Passed),
        ("named", cut, "r.toolCalls[0].name === 'find'", Outcome::Passed),
        ("cut", cut, "r.toolCalls[0].arguments.q !== 1", Outcome::Undecided),
    ];
    let mut play = Play { may_warn: true, ..Play::new() };
    let lines: Vec<String> =
        cases.iter().map(|(name, answer, ..)| format!("{{\"case\":\"{name}\",{answer}}}\n")).collect();
    let answers = play.write("answers.jsonl", &lines.concat());
    play.settings.arms.agents = vec![format!("recorded:{}", answers.display())];
    for (name, _, claim, _) in cases {
        play = play.scenario(
            name,
            &format!("  const r = await agent.send('go');\n  console.log(r);\n  assert.custom('it', () => {claim});"),
        );
    }
    let records = play.run().await;
    for ((name, .., expected), record) in cases.iter().zip(&records) {
        assert_eq!(record.outcome, *expected, "{name}: {:#?}", describe(record));
    }
    let finding = &records[0].findings[1];
    assert_eq!((finding.id.as_str(), line(finding).0), ("toolCalls-1", 5), "{finding:#?}");
    assert_eq!(finding.reason, "the test reads `toolCalls`, but the agent does not report which tools it called");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_scenarios_do_not_see_each_others_claims() {
    let mut play = Play::new();
    for number in 0..24 {
        let body = format!(
            "  const r = await agent.send('this is {number}.');\n  await new Promise((done) => setTimeout(done, {}));\n  assert.contains(r, 'this is {number}.');\n  for (let i = 0; i < {}; i++) assert.custom('c', () => true);",
            number % 5,
            number % 3
        );
        play = play.scenario(&format!("s{number}"), &body);
    }
    for (number, record) in play.run().await.iter().enumerate() {
        assert_eq!((record.outcome, describe(record).len()), (Outcome::Passed, 1 + number % 3), "{record:#?}");
        assert_eq!(record.input, [format!("this is {number}.")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_can_read_the_sandbox() {
    let files = |mut case: Case| {
        let mut fixtures = model::Fixtures::default();
        fixtures.files_unstaged.push(fixture("a.txt", "one"));
        case.fixtures = Arc::new(fixtures);
        case
    };
    let body = "  const before = await agent.files.read('a.txt');
  const r = await agent.send('!write b/c.txt two');
  const text = await agent.files.read('b/c.txt');
  const names = await agent.files.list();
  const there = [await agent.files.exists('b'), await agent.files.exists('gone')];
  const outside = await agent.files.read('../../etc/passwd').catch((error) => error.message);
  assert.custom('files', () => JSON.stringify([before, text, names, there]) === '[\"one\",\"two\\\\n\",[\"a.txt\",\"b/\"],[true,false]]', r);
  assert.custom('inside', () => outside.includes('leads out of the sandbox'));
  assert.fileExists('b/c.txt');
  await agent.files.read('gone.txt');";
    let record = Play::new().with("x", body, files).run().await.remove(0);
    let findings = describe(&record);
    assert_eq!(findings.len(), 4, "{findings:#?}");
    assert!(record.findings[..3].iter().all(|finding| finding.status == Status::Met), "{findings:#?}");
    assert_eq!(findings[3], "scenario unmet: Error: there is no file `gone.txt` in the sandbox");
    assert_eq!(line(&record.findings[3]).0, 12);
}

fn fixture(path: &str, text: &str) -> FixtureFile {
    let source = Excerpt::of_file("case.yaml");
    FixtureFile { path: path.into(), content: text.as_bytes().into(), executable: false, source }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_ends_its_scenarios() {
    let (stop, controls) = mpsc::unbounded_channel();
    let play = Play::new()
        .scenario("loop", "  assert.custom('a', () => true);\n  for (;;) {}")
        .scenario("wait", "  await new Promise((done) => setTimeout(done, 1e6));");
    let stopping = async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        stop.send(Control::Stop("test".into())).unwrap();
    };
    let (records, ()) = tokio::join!(play.run_until(controls), stopping);
    assert!(records.iter().all(|record| record.outcome == Outcome::Cancelled), "{records:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_cannot_run_is_broken_and_reports_every_problem() {
    let mut play = Play::new().scenario("good", "  assert.custom('a', () => true);");
    let problem =
        |text: &str| model::Diagnostic::error(text).at(Excerpt { line: 3, ..Excerpt::of_file("bad.test.ts") });
    let broken = vec![problem("one").help("do this"), problem("two")];
    let case = Case { broken, ..Case::new("bad.test.ts", Excerpt::of_file("bad.test.ts")) };
    let path = play.folder.path().join("bad.test.ts");
    play.suites.push(Suite { name: "bad".into(), path, format: "code", cases: vec![Arc::new(case)] });
    let records = play.run().await;
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [Outcome::Passed, Outcome::Broken]);
    assert_eq!(records[1].reason.as_deref(), Some("bad.test.ts:3:1: one; do this (and 1 more)"));
    assert_eq!(records[1].errors, ["bad.test.ts:3:1: one; do this", "bad.test.ts:3:1: two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_no_longer_loads_breaks_its_trial() {
    let mut play = Play::new().scenario("x", "  assert.custom('a', () => true);");
    play.write("x.test.ts", "export default 5;\n");
    play.settings.retry.retries = 0;
    let record = play.run().await.remove(0);
    assert_eq!(record.outcome, Outcome::Broken, "{record:#?}");
    assert!(record.reason.unwrap().contains("has changed"));
}

/// An agent that counts the messages in a conversation.
const COUNTING: &str = "let heard = 0;
export const send = (message, { conversationId, options }) =>
  `${options.name} heard ${++heard}: ${message} in ${conversationId}`;
";

impl Play {
    /// Configures the project's agents: `own`, with which scenarios run, `other`, and `gone`, which cannot be loaded.
    fn counting(mut self) -> Self {
        self.write("agent.mjs", COUNTING);
        let configured = |name: &str, config: serde_json::Value| {
            let node = model::Node::from_json(&config, &model::Source::new("trialrun.yaml", ""));
            let directory = self.folder.path().to_owned();
            Arc::new(Configured { name: name.into(), node, directory, is_filled: true, is_of_suite: false })
        };
        let custom = |name| json!({"type": "custom", "module": "./agent.mjs", "options": {"name": name}});
        self.settings.configured = vec![
            configured("own", custom("own")),
            configured("other", custom("other")),
            configured("gone", json!({"type": "custom", "module": "./gone.mjs"})),
        ];
        self.settings.arms.agents = vec!["own".into()];
        self.may_warn = true;
        self
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_has_several_conversations_and_agents() {
    let body = "  const [a, b] = await Promise.all([agent.send('a'), agents.second.send('b')]);
  const c = await agents.second.send('c');
  const d = await agents.other.send('d');
  const e = await agents.own.send('e');
  assert.contains(a, 'own heard 1: a in custom-x::x@own');
  assert.notContains(a, '/second');
  assert.contains(b, 'own heard 1: b in custom-x::x@own#1/second');
  assert.contains(c, 'own heard 2: c');
  assert.contains(d, 'other heard 1: d in custom-x::x@own#1/other');
  assert.contains(e, 'own heard 2: e');
  assert.custom('names', () => agents.second.name === 'second' && agents.own === agent);";
    let record = Play::new().counting().scenario("x", body).run().await.remove(0);
    assert_eq!((record.outcome, record.replies.len()), (Outcome::Passed, 5), "{:#?}", describe(&record));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_sent_at_once_in_one_conversation_are_a_warning() {
    let body = "  const [a, b] = await Promise.all([agent.send('a'), agent.send('b')]);
  await agent.send('c');
  assert.contains(b, 'b');";
    let record = Play::new().counting().scenario("x", body).run().await.remove(0);
    assert_eq!((record.outcome, record.replies.len()), (Outcome::Passed, 3), "{:#?}", describe(&record));
    let warnings: Vec<&String> = record.warnings.iter().filter(|warning| warning.contains("at once")).collect();
    assert_eq!(warnings.len(), 1, "{:?}", record.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_that_cannot_be_opened_breaks_the_trial() {
    let body = "  await agents.gone.send('a');\n  assert.custom('a', () => true);";
    let record = Play::new().counting().scenario("x", body).run().await.remove(0);
    assert_eq!(record.outcome, Outcome::Broken, "{record:#?}");
    assert!(record.reason.unwrap().starts_with("`agents.gone`: trialrun.yaml:1:1: cannot read the module"));
}
