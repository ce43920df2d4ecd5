//! Assertions and transforms that are code: JavaScript in the script engine, Python as a process in the grading tree.

use std::path::{Path, PathBuf};

use expect::{Argument, FUNCTION_TAG, Function, Host, Trouble};
use model::decode::Problems;
use model::{Need, Node, NodeKind, Probed};
use serde_json::{Map, Value, json};

use super::{Answer, Entry, Graded, number};
use crate::scripts::Scripts;

/// Time limit for a Python assertion.
const PYTHON_MS: u64 = 60_000;

/// Start of the line with the result of a Python assertion.
const RESULT: &str = "trialrun-result:";

/// Runs a Python assertion. Its arguments are the answer, the context, the code, the function and the folder of the
/// code.
const PYTHON: &str = r#"
import asyncio, functools, inspect, json, sys
output, context, code, function, directory = sys.argv[1:6]
sys.path.insert(0, directory)
names = {"__name__": "assertion"}
exec(compile(code, "assertion.py", "exec"), names)
first, *rest = function.split(".")
result = functools.reduce(getattr, rest, names[first])(output, json.loads(context))
if inspect.iscoroutine(result):
    result = asyncio.run(result)
print()
print("trialrun-result:" + json.dumps(result))
"#;

/// Names that code has.
const NAMES: [&str; 2] = ["output", "context"];

/// Code in JavaScript.
#[derive(Debug)]
enum Script {
    /// Expression, or body of a function.
    Inline(String),
    /// Function of a module.
    Function(Function),
}

impl Script {
    /// Reads `node`, which is code or `file://MODULE:FUNCTION`. Problems are reported.
    fn read(node: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<(Self, Scripts)> {
        let scripts = entry.context.scripts.cloned().unwrap_or_default();
        let Some(text) = node.as_str() else {
            problems.push(node.error(format!("code must be a string, not {}", node.kind_name())));
            return None;
        };
        let found = match text.strip_prefix("file://") {
            // A function in the configuration itself.
            _ if node.tag.as_deref() == Some(FUNCTION_TAG) => {
                let directory = entry.context.directory.unwrap_or(Path::new("/"));
                scripts.function(text, "", directory).map(Self::Function)
            }
            Some(reference) => {
                let directory = entry.context.directory.map(PathBuf::from).unwrap_or_default();
                let (file, name) = module_and_name(reference);
                let reference = format!("{}#{}", directory.join(file).display(), name.unwrap_or("default"));
                scripts.function(&reference, "", &directory).map(Self::Function)
            }
            None => {
                let body = body(text);
                scripts.expression(&body, &NAMES).map(|()| Self::Inline(body))
            }
        };
        match found {
            Ok(script) => Some((script, scripts)),
            Err(invalid) => {
                problems.push(invalid.diagnostic(node));
                None
            }
        }
    }

    fn run(&self, scripts: &Scripts, output: &Value, context: &Value) -> Result<Option<Value>, Trouble> {
        match self {
            Self::Inline(body) => scripts.evaluate(body, &[("output", Some(output)), ("context", Some(context))]),
            Self::Function(function) => {
                let arguments = [Argument::Value(Some(output)), Argument::Value(Some(context))];
                scripts.call(function, &arguments, &mut |_| Err("there is no such function here".to_owned()))
            }
        }
    }
}

/// Returns the module and the name of the function in `MODULE:FUNCTION`.
fn module_and_name(reference: &str) -> (&str, Option<&str>) {
    match reference.rsplit_once(':') {
        Some((file, name)) if !name.contains(['/', '\\', '.']) => (file, Some(name)),
        _ => (reference, None),
    }
}

/// Returns the body of the function that promptfoo makes of `code`: several lines are a body, and one line is an
/// expression, which may follow declarations.
fn body(code: &str) -> String {
    let code = code.trim_end();
    if code.contains('\n') {
        return code.to_owned();
    }
    let code = code.trim().trim_end_matches([';', ' ']);
    let declares = ["const ", "let ", "var "].iter().any(|word| code.starts_with(word));
    match last_semicolon(code).filter(|_| declares) {
        Some(at) => format!("{} return ({});", &code[..=at], code[at + 1..].trim()),
        None => code.to_owned(),
    }
}

/// Returns the offset of the last semicolon that is not in a string.
fn last_semicolon(code: &str) -> Option<usize> {
    let (mut quote, mut escaped, mut last) = (None, false, None);
    for (at, letter) in code.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            None if letter == ';' => last = Some(at),
            None => {}
        }
    }
    last
}

/// Change of the answer before it is graded.
#[derive(Debug)]
pub(super) struct Transform {
    script: Script,
    scripts: Scripts,
    context: Value,
}

impl Transform {
    pub(super) fn read(node: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Self> {
        let (script, scripts) = Script::read(node, entry, problems)?;
        Some(Self { script, scripts, context: context_of(entry, None) })
    }

    /// Returns the changed answer.
    ///
    /// # Errors
    /// Returns the reason if there is none.
    pub(super) fn apply(&self, value: &Value) -> Result<Value, String> {
        match self.script.run(&self.scripts, value, &self.context) {
            Ok(Some(changed)) if !changed.is_null() => Ok(changed),
            Ok(_) => Err("the transform of the answer returned nothing".to_owned()),
            Err(Trouble::Thrown(message) | Trouble::Stopped(message)) => {
                Err(format!("the transform of the answer failed: {message}"))
            }
        }
    }
}

/// Returns what code finds in `context`.
fn context_of(entry: &Entry<'_>, config: Option<&Node>) -> Value {
    let vars = entry.node.get("vars").map(Node::to_json).unwrap_or_else(|| json!({}));
    let mut context = Map::new();
    context.insert("prompt".into(), entry.prompt().into());
    context.insert("test".into(), json!({ "vars": vars }));
    context.insert("vars".into(), vars);
    context.insert("metadata".into(), json!({}));
    context.extend(config.map(|config| ("config".to_owned(), config.to_json())));
    Value::Object(context)
}

/// Assertion that is code.
#[derive(Debug)]
pub(super) struct Code {
    language: Language,
    inverse: bool,
    threshold: Option<f64>,
}

#[derive(Debug)]
enum Language {
    JavaScript { script: Script, scripts: Scripts, context: Value },
    Python(Need),
}

impl Code {
    /// Reads an assertion of the type `kind`; `None` if it is not code. Problems are reported.
    pub(super) fn read(
        kind: &str,
        inverse: bool,
        assertion: &Node,
        entry: &Entry<'_>,
        problems: &mut Problems,
    ) -> Option<Option<Self>> {
        let language = match kind {
            "javascript" => javascript(assertion, entry, problems),
            "python" => python(assertion, entry, problems),
            _ => return None,
        };
        let threshold = number(assertion, "threshold");
        Some(language.map(|language| Self { language, inverse, threshold }))
    }

    /// Returns the command that must run before it can be graded.
    pub(super) fn need(&self) -> Option<Need> {
        match &self.language {
            Language::JavaScript { .. } => None,
            Language::Python(need) => Some(need.clone()),
        }
    }

    /// Grades the answer.
    ///
    /// # Errors
    /// Returns the reason if it cannot be decided.
    pub(super) fn grade(&self, answer: &Answer<'_>) -> Result<Graded, String> {
        let (result, language) = match &self.language {
            Language::JavaScript { script, scripts, context } => {
                let mut context = context.clone();
                if let Some(context) = context.as_object_mut() {
                    let trace = &answer.evidence.trace;
                    let latency = trace.replies.last().and_then(|reply| reply.latency_ms);
                    let response =
                        json!({ "output": answer.value, "cost": trace.usage.cost_usd, "latencyMs": latency });
                    context.insert("providerResponse".into(), response);
                }
                match script.run(scripts, &answer.value, &context) {
                    Ok(result) => (result.unwrap_or_default(), "JavaScript"),
                    Err(Trouble::Stopped(message)) => return Err(message),
                    Err(Trouble::Thrown(message)) if message.contains(" is not available here") => return Err(message),
                    Err(Trouble::Thrown(message)) => {
                        return Ok(Graded::plain(false, format!("the code threw an error: {message}")));
                    }
                }
            }
            Language::Python(need) => match printed(need, answer)? {
                Ok(result) => (result, "Python"),
                Err(message) => return Ok(Graded::plain(false, format!("the code failed: {message}"))),
            },
        };
        self.normalised(&result, language)
    }

    /// Returns what `result` means: a boolean, a number, or a map with `pass`, `score` and `reason`.
    fn normalised(&self, result: &Value, language: &str) -> Result<Graded, String> {
        let is_python = language == "Python";
        let parsed;
        let mut result = result;
        if let (true, Some(text)) = (is_python, result.as_str()) {
            parsed = match text.to_lowercase().as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => serde_json::from_str(text.trim()).unwrap_or(Value::Null),
            };
            result = &parsed;
        }
        match result {
            Value::Bool(holds) => Ok(Graded::plain(*holds != self.inverse, format!("the code returned {holds}"))),
            Value::Number(score) => {
                let score = score.as_f64().unwrap_or_default();
                let holds = self.threshold.map_or(score > 0.0, |threshold| score >= threshold);
                Ok(Graded { pass: holds != self.inverse, score, reason: format!("the code returned {score}") })
            }
            Value::Object(map) => {
                let get = |camel: &str, snake: &str| map.get(camel).or_else(|| map.get(snake).filter(|_| is_python));
                let pass = get("pass", "pass_").and_then(Value::as_bool);
                let score = get("score", "score").and_then(Value::as_f64);
                let (Some(pass), Some(score)) = (pass, score) else {
                    return Err(format!("the code returned a map without `pass` and `score`: {result}"));
                };
                // There, a threshold applies to the maps that Python returns, and not to those of JavaScript.
                let pass = pass && !(is_python && self.threshold.is_some_and(|threshold| score < threshold));
                let reason = map.get("reason").and_then(Value::as_str).unwrap_or("the code returned a result");
                Ok(Graded { pass: pass != self.inverse, score, reason: reason.to_owned() })
            }
            other => {
                Err(format!("the code returned {other}, not a boolean, a number or a map with `pass` and `score`"))
            }
        }
    }
}

fn javascript(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Language> {
    let node = super::value(assertion, problems)?;
    let (script, scripts) = Script::read(node, entry, problems)?;
    Some(Language::JavaScript { script, scripts, context: context_of(entry, assertion.get("config")) })
}

fn python(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Language> {
    let given = entry.node.get("transforms").map(|node| &node.kind);
    let is_transformed = matches!(given, Some(NodeKind::List(items)) if !items.is_empty());
    if is_transformed || assertion.get("transform").is_some() {
        let problem = assertion.error("`transform` cannot be combined with an assertion in Python");
        problems.push(problem.help("the code runs before answers are transformed; transform the answer in the code"));
        return None;
    }
    // The reader replaces a file by its text.
    let code = match assertion.get("code").and_then(Node::as_str) {
        Some(code) => code.to_owned(),
        None => function_of(&super::text_value(assertion, problems)?),
    };
    let text = |key: &str| assertion.get(key).and_then(Node::as_str);
    let directory = entry.context.directory.unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let directory = text("directory").unwrap_or(&directory);
    let context = context_of(entry, assertion.get("config")).to_string();
    let words = [PYTHON, &context, &code, text("function").unwrap_or("main"), directory];
    if words.iter().any(|word| word.contains('\0')) {
        problems.push(assertion.error("the code contains a NUL character"));
        return None;
    }
    let [program, rest @ ..] = words.map(quoted);
    let run = format!("exec python3 -c {program} \"$1\" {}", rest.join(" "));
    Some(Language::Python(Need::Command { run, timeout_ms: PYTHON_MS }))
}

/// Returns a function called `main` whose body is `code`. A single line is the value that it returns.
fn function_of(code: &str) -> String {
    let body = match code.contains('\n') {
        true => code.lines().map(|line| format!("    {line}\n")).collect::<String>(),
        false => format!("    return {code}\n"),
    };
    format!("import json\n\ndef main(output, context):\n{body}")
}

/// Returns `word` as a word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the result that a Python assertion printed, or the last line of its error.
fn printed(need: &Need, answer: &Answer<'_>) -> Result<Result<Value, String>, String> {
    match answer.evidence.collected.probed(need) {
        Some(Probed::Ran { exit_code: Some(0), stdout, .. }) => {
            let line = stdout.lines().rev().find_map(|line| line.strip_prefix(RESULT));
            let line = line.ok_or("the code printed no result")?;
            serde_json::from_str(line).map(Ok).map_err(|error| format!("the result of the code is not JSON: {error}"))
        }
        Some(Probed::Ran { exit_code: Some(127 | 126), .. }) => Err("there is no program named `python3`".to_owned()),
        Some(Probed::Ran { exit_code: Some(_), stderr, .. }) => {
            let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended with an error");
            Ok(Err(last.to_owned()))
        }
        Some(Probed::Ran { exit_code: None, .. }) => Err("the code did not end in time".to_owned()),
        Some(Probed::Failed { reason } | Probed::Lost { reason }) => {
            Err(format!("the code could not be run: {reason}"))
        }
        _ => Err("the code was not run".to_owned()),
    }
}
