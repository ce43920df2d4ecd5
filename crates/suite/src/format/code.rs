//! `code`: tests as code, in files called `NAME.test.ts`. A module is evaluated to find the scenarios that it exports;
//! their behaviour is known only when they run. A file that does not load becomes a single case that cannot be run,
//! and other files are not affected.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::decode::{Fields, Problems};
use model::{Case, Code, Diagnostic, DiagnosticKind, Excerpt, Node, NodeKind, Severity, Source};
use script::{Call, ScriptError, Tests, Value, Written};

use super::scenario::{fixtures_of, quarantine, skip};
use super::{NamedFormat, ONLY_SCENARIO, SuiteFile, directory, file_name, skip_others};
use crate::document;
use crate::graded::graded;
use crate::library::Library;
use crate::mocks::mocks;
use crate::trials::{pass_rate, trials};

/// The `code` format.
pub const CODE: NamedFormat = NamedFormat {
    name: "code",
    tool: None,
    mark: "a file called `NAME.test.ts`, or with `.mts`, `.tsx`, `.js`, `.mjs`, `.jsx` at its end",
    fails_alone: true,
    is_meant,
    suite: |path| {
        let file = file_name(path)?;
        ENDINGS.iter().find_map(|ending| file.strip_suffix(ending)).filter(|name| !name.is_empty())
    },
    folder: |_| None,
    read,
};

/// File name endings of the format.
const ENDINGS: [&str; 6] = [".test.ts", ".test.mts", ".test.tsx", ".test.js", ".test.mjs", ".test.jsx"];

/// Time limit for evaluating a module, including everything it imports.
const LOADING: Duration = Duration::from_secs(10);

/// Index of the options in `scenario(name, options, fn)`.
const OPTIONS: usize = 1;

/// Returns `true` if the module at `path` imports the test module, itself or through modules of its own.
fn is_meant(path: &Path, text: &str) -> bool {
    let is_test = |module: &Path| document::guess(module).is_some_and(|text| Tests::may_be(&text));
    Tests::may_be(text)
        || (Tests::may_share_one(text) && script::Library::new().imports(path).iter().any(|module| is_test(module)))
}

fn read(path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    match load(path, source, library, problems) {
        Ok(tests) => cases(path, source, &tests, library, problems),
        // It is a problem of the configuration.
        Err(ScriptError::NoRuntime(_)) => Vec::new(),
        Err(error) => vec![Arc::new(unloaded(path, source, error.diagnostic()))],
    }
}

fn load(path: &Path, source: &Source, library: &Library, problems: &mut Problems) -> Result<Tests, ScriptError> {
    let options = || {
        let mut options = script::Options::new(directory(path));
        // Modules are identified by file names with links resolved.
        options.shown_from = library.cwd.canonicalize().unwrap_or_else(|_| library.cwd.clone());
        options.library = library.modules.clone();
        options.is_inspection = true;
        options
    };
    let (mut runtime, mut tests) = script::open(path, &options, &mut |runtime| runtime.tests(path, LOADING))?;
    problems.extend(runtime.missing_imports(path, source));
    runtime.locate(&mut tests);
    Ok(tests)
}

/// Creates the only case of a file whose cases are unknown.
fn unloaded(path: &Path, source: &Source, mut problem: Diagnostic) -> Case {
    let place = problem.source.get_or_insert_with(|| Excerpt::of_file(&*source.path)).clone();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Case { broken: vec![problem], fails_alone: true, ..Case::new(name, place) }
}

/// Returns the cases of a loaded module.
fn cases(path: &Path, source: &Source, tests: &Tests, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    // A scenario that a package offers to its users is not a mistake.
    let of_file = |other: &&Written| other.call.as_ref().is_some_and(|call| call.source.path == source.path);
    let unexported: Vec<&Written> = tests.others.iter().filter(of_file).collect();
    let callee = |one: &Written| one.call.as_ref().map(|call| call.callee);
    // One call defines all scenarios of `scenario.each`.
    let mut unused = Problems::new();
    for made_there in unexported.chunk_by(|one, next| callee(one) == callee(next)) {
        let message = match made_there {
            [one] => format!("the scenario `{}` is not exported, so it does not run", one.name),
            all => format!("the {} scenarios that are defined here are not exported, so they do not run", all.len()),
        };
        let place = made_there.iter().find_map(|one| one.call.as_ref()).map(Call::excerpt);
        let problem = Diagnostic::warning(message).help("write `export` before it");
        unused.push(Diagnostic { source: place, ..problem });
    }
    if tests.scenarios.is_empty() {
        let problem = Diagnostic::error("the file does not export a scenario")
            .help("write `export default scenario(\"name\", async ({ agent, assert }) => { … })`");
        // If there are some, it is one mistake.
        let mut unused = unused.into_iter();
        let problem = unused.next().map_or(problem, |first| Diagnostic { severity: Severity::Error, ..first });
        problems.extend(unused);
        return vec![Arc::new(unloaded(path, source, problem))];
    }
    problems.extend(unused);
    let mut taken = HashSet::new();
    let mut cases: Vec<Case> = Vec::with_capacity(tests.scenarios.len());
    for (number, written) in tests.scenarios.iter().enumerate() {
        let place = place_of(written, source);
        let mut case = Case { fails_alone: true, ..Case::new(line(&written.name), place.clone()) };
        let claims = written.call.iter().flat_map(|call| call.claims.clone()).collect();
        case.code =
            Some(Box::new(Code { module: path.to_owned(), scenario: number, name: written.name.clone(), claims }));
        options(written, path, source, library, &mut case, problems);
        let mistakes = written.call.iter().flat_map(|call| call.mistakes.clone());
        let (errors, doubts): (Vec<_>, Vec<_>) = mistakes.partition(Diagnostic::is_error);
        case.broken.extend(errors);
        // All scenarios of `scenario.each` have those of its call.
        let new: Vec<Diagnostic> = doubts.into_iter().filter(|doubt| !problems.contains(doubt)).collect();
        problems.extend(new);
        if taken.contains(&case.id) {
            let first = cases.iter().find(|other| other.id == case.id).map(|other| other.source.to_string());
            let problem = Diagnostic::warning(format!("a second scenario is called `{}`", case.id)).at(place);
            let problem = problem.of(DiagnosticKind::TakenId);
            problems.push(problem.help(format!("the first is at {}", first.unwrap_or_default())));
            let other = (2..).map(|count| format!("{} ({count})", case.id)).find(|id| !taken.contains(id));
            case.id = other.unwrap_or(case.id);
        }
        taken.insert(case.id.clone());
        cases.push(case);
    }
    skip_others(&mut cases, ONLY_SCENARIO);
    cases.into_iter().map(Arc::new).collect()
}

/// Returns the location of a scenario's name, if known.
fn place_of(written: &Written, source: &Source) -> Excerpt {
    match &written.call {
        Some(call) => {
            let name = call.arguments.first().map_or(call.callee, |name| name.span);
            call.source.excerpt(name)
        }
        None => Excerpt::of_file(&*source.path),
    }
}

/// Replaces control characters, because an id is one line of text.
fn line(name: &str) -> String {
    name.split(char::is_control).collect::<Vec<_>>().join(" ")
}

/// Reads a scenario's options into `case`. With errors, the case cannot be run; warnings about doubtful values are
/// added to `warnings`.
fn options(
    written: &Written,
    path: &Path,
    source: &Source,
    library: &Library,
    case: &mut Case,
    warnings: &mut Problems,
) {
    let node = match &written.call {
        Some(call) => call.argument(OPTIONS, &written.options),
        None => Node::from_json(&written.options.to_json(), &Source::new(source.path.clone(), "")),
    };
    if matches!(written.options, Value::Map(ref entries) if entries.is_empty()) {
        return;
    }
    let mut problems = Problems::new();
    if let Some(mut fields) = Fields::of(&node, "the options of a scenario", &mut problems) {
        case.description = fields.any_text("description", &mut problems);
        case.tags = fields.texts("tags", &mut problems).unwrap_or_default();
        // Other JavaScript test runners use milliseconds.
        case.timeout_ms = fields.duration_or_ms("timeout", &mut problems);
        case.reruns = reruns(&mut fields, &mut problems);
        case.trials = fields.get("trials").and_then(|node| trials(node, &mut problems));
        case.pass_rate = fields.get("pass_rate").and_then(|node| pass_rate(node, &mut problems));
        case.skip = skip(&mut fields, &mut problems);
        case.quarantine = fields.get("quarantine").and_then(|node| quarantine(node, library.now_ms, &mut problems));
        case.graded = fields.get("graded").map(|node| graded(node, directory(path), &mut problems)).unwrap_or_default();
        case.mocks = Arc::new(mocks(&mut fields, directory(path), &mut problems));
        if let Some(fixtures) = fields.get("fixtures") {
            case.fixtures = fixtures_of(fixtures, &SuiteFile { path, root: &node }, library, &mut problems);
        }
        if let Some(tools) = fields.list("tools", &mut problems) {
            case.tools = tools.iter().map(Node::to_json).collect();
            case.tools_source = fields.get("tools").map(Node::excerpt);
        }
        case.only = only(&mut fields, &mut problems).map(|node| match &written.call {
            // It is not written in the options, but called.
            Some(call) if call.arguments.get(OPTIONS).is_none_or(|options| options.entry("only").is_none()) => {
                call.excerpt()
            }
            _ => node.excerpt(),
        });
        fields.finish(&mut problems);
    }
    let (errors, doubts) = problems.into_iter().partition(Diagnostic::is_error);
    case.broken = errors;
    warnings.extend::<Problems>(doubts);
}

/// Reads `reruns`, or `retries`, its name in Fabrik Lite.
fn reruns(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<u32> {
    let reruns = fields.whole("reruns", 0, problems);
    let retries = fields.whole("retries", 0, problems);
    fields.refuse_both("reruns", "retries", problems);
    reruns.or(retries).map(|reruns| u32::try_from(reruns).unwrap_or(u32::MAX))
}

fn only<'n>(fields: &mut Fields<'n>, problems: &mut Problems) -> Option<&'n Node> {
    let node = fields.get("only")?;
    if !matches!(node.kind, NodeKind::Bool(_)) {
        problems.push(node.error(format!("`only` must be true or false, not {}", node.kind_name())));
    }
    Some(node).filter(|node| matches!(node.kind, NodeKind::Bool(true)))
}
