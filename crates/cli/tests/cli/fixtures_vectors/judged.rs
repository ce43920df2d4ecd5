//! Runs one recorded situation: writes its fixtures file and settings, loads and compiles them, and grades the answer
//! of the recorded executor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grade::{Context, Scripts};
use model::{Collected, Diagnostic, Ending, Evidence, Finding, Outcome, Scoring, Step, Trace, Usage, UserMessage};
use serde_json::{Map, Value, json};
use suite::{Project, Request, load};

/// Result of a case.
#[derive(Debug, Default)]
pub struct Judged {
    /// `pass`, `fail`, `error` or `skip`.
    pub status: &'static str,
    pub refused: Vec<String>,
    pub scoring: Option<Scoring>,
    pub score: Option<f64>,
    pub findings: Vec<Finding>,
    pub message: UserMessage,
    pub title: Option<String>,
    pub expected: Option<Value>,
    pub output: Option<Value>,
}

/// Directory and tools for the situations.
pub struct Bench {
    directory: tempfile::TempDir,
    operators: PathBuf,
    scripts: Scripts,
}

impl Bench {
    /// Returns the bench for the vectors in a folder, which may import `packages`.
    pub fn new(vectors: &Path, packages: Option<&Path>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let operators = directory.path().join("operators");
        std::fs::create_dir(&operators).unwrap();
        for file in std::fs::read_dir(vectors.join("operators")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), operators.join(file.file_name())).unwrap();
        }
        if let Some(packages) = packages {
            std::os::unix::fs::symlink(packages.join("node_modules"), operators.join("node_modules")).unwrap();
        }
        Self { operators, scripts: Scripts::new("/"), directory }
    }

    /// Runs every case of `vector`, in order.
    pub fn run(&self, vector: &Value) -> Vec<Judged> {
        let root = self.directory.path();
        let empty = json!({});
        let options = vector.get("options").unwrap_or(&empty);
        std::fs::write(root.join("trialrun.yaml"), self.settings(vector, options).to_string()).unwrap();
        let file = root.join("vector.fixture.yaml");
        std::fs::write(&file, fixtures_file(vector, options)).unwrap();
        let (project, mut problems) = Project::find(root, root);
        let loaded = load(&Request {
            root: root.to_owned(),
            skills_dir: root.join("skills"),
            tests: None,
            cwd: root.to_owned(),
            targets: vec![file.to_string_lossy().into_owned()],
            skill: None,
            fixtures: project.fixtures,
            ..Request::default()
        });
        problems.extend(loaded.diagnostics);
        let refused = errors(&problems);
        let cases: Vec<_> = loaded.suites.iter().flat_map(|suite| suite.cases.iter().cloned()).collect();
        if cases.is_empty() && refused.is_empty() {
            return Vec::new();
        }
        if cases.is_empty() {
            return vec![Judged { status: "error", refused, ..Judged::default() }];
        }
        let executors = vector["exec"].as_array().cloned().unwrap_or_else(|| vec![vector["exec"].clone()]);
        let many = vector.get("fixtures").is_some();
        let judged = cases.iter().enumerate().map(|(index, case)| {
            let executor = executors.get(index).or(executors.last()).filter(|_| many);
            let executor = executor.unwrap_or(&vector["exec"]);
            self.judge(case, executor, &refused)
        });
        judged.collect()
    }

    fn judge(&self, case: &model::Case, executor: &Value, refused: &[String]) -> Judged {
        let message = case.messages.first().cloned().unwrap_or_default();
        let mut judged = Judged {
            message,
            title: case.description.clone(),
            expected: case.expected.clone(),
            refused: refused.to_vec(),
            scoring: case.ruling.scoring,
            ..Judged::default()
        };
        if case.skip.is_some() {
            judged.status = "skip";
            return judged;
        }
        let directory = self.directory.path();
        let context = Context { directory: Some(directory), scripts: Some(&self.scripts), ..Context::default() };
        let (checks, problems) = grade::compile(case, &context);
        judged.refused.extend(errors(&problems));
        let result = match executor.get("returns") {
            Some(returned) => returned.clone(),
            None => executor.clone(),
        };
        if executor.get("throw").is_some() || result.is_null() {
            judged.status = "error";
            return judged;
        }
        judged.output = result.get("output").cloned();
        let finished = Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: None,
            result: Some(result),
        };
        let evidence = Evidence {
            trace: Trace::of(&[finished]),
            collected: Collected::default(),
            ending: Ending::Finished,
            limits: Arc::default(),
            unused_responses: Vec::new(),
            agent_ms: None,
        };
        let mut findings = grade::grade(&checks, &evidence);
        findings.retain(|finding| !finding.implicit);
        judged.score = case.ruling.scoring.map(|scoring| scoring.score(&findings));
        judged.status = match Outcome::of(&findings, &evidence.ending, &case.ruling) {
            Outcome::Passed => "pass",
            Outcome::Failed => "fail",
            _ => "error",
        };
        judged.findings = findings;
        judged
    }

    fn settings(&self, vector: &Value, options: &Value) -> Value {
        let mut section = Map::new();
        for (key, value) in options.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "fixtureConfig" | "skips") {
                section.insert(key.clone(), value.clone());
            }
        }
        if matches!(vector["area"].as_str(), Some("operators" | "errors")) {
            section.insert("baseDir".into(), self.operators.to_string_lossy().into());
        }
        json!({ "fixtures": section })
    }
}

fn errors(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect()
}

/// Returns the front matter and the cases; JSON is YAML.
fn fixtures_file(vector: &Value, options: &Value) -> String {
    let cases = match vector.get("fixtures") {
        Some(cases) => cases.as_array().cloned().unwrap_or_default(),
        None => vec![vector["fixture"].clone()],
    };
    let cases = Value::Array(cases);
    let mut front = options.get("fixtureConfig").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(skips) = options.get("skips") {
        front.insert("skips".into(), skips.clone());
    }
    if !front.contains_key("script") {
        let script = vector.get("script").cloned().unwrap_or_else(|| "my-script".into());
        front.insert("scripts".into(), json!([script]));
    }
    format!("---\n{}\n---\n{cases}\n", Value::Object(front))
}
