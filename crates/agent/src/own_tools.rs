//! Tools that a case provides: modules, or objects whose `execute` is in a module. They run in the embedded engine.

use std::path::Path;
use std::sync::Arc;

use llm::ToolSpec;
use model::{Case, Diagnostic, Ending, nearest};
use sandbox::Breakage;
use script::{Function, Reference, Value};
use serde_json::{Map, Value as Json, json};

use super::engine::{Engine, Program, is_of_the_program};
use super::{RunState, SessionContext, joined};
use crate::turn::Turn;

/// Finds each tool in its module: the export is a tool object, or a function that is the whole tool.
const FIND: &str = r#"export default wanted.map(([at, keys, name, described]) => {
    const module = modules[at];
    const whole = typeof module.execute === 'function' ? module : module.default;
    const found = keys ? keys.reduce((inside, key) => inside?.[key], module) : whole;
    const own = described ?? found;
    return {
        name: own?.name && own.name !== 'default' ? own.name : name,
        description: own?.description,
        parameters: own?.parameters,
        execute: typeof found === 'function' ? found
            : typeof found?.execute === 'function' ? (args) => found.execute(args)
            : undefined,
    };
});"#;

const FORM: &str = "a tool is an object `{name, description, parameters, execute}`";

/// Maximum length of a tool's name that every provider accepts.
const MAX_NAME_LEN: usize = 64;

/// Result of a tool: its output, or its error.
pub(super) type ToolOutput = Result<String, String>;

/// Agent that uses the tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    /// Name of the agent.
    pub(super) agent: &'static str,
    /// Names of the agent's own tools.
    pub(super) tools: &'static [&'static str],
}

/// Problem with a tool.
type Problem = Box<Diagnostic>;

fn wrong<T>(message: impl Into<String>, help: &str) -> Result<T, Problem> {
    Err(Box::new(Diagnostic::error(message).help(help)))
}

/// A tool as the case refers to it.
struct ToolReference {
    reference: Reference,
    /// Description of the tool, without its function, if the case contains one.
    described: Option<Map<String, Json>>,
}

/// A loaded tool of a case.
struct OwnTool {
    spec: ToolSpec,
    execute: Function,
}

/// The tools of a case.
#[derive(Default)]
pub(super) struct OwnTools {
    engine: Option<Engine>,
    tools: Vec<OwnTool>,
}

/// Returns the problems with the tools of `case`.
pub(super) fn check(case: &Case, directory: &Path, state: &Arc<RunState>, owner: Owner) -> Vec<Diagnostic> {
    let at_case = |problem: Diagnostic| problem.or_at(|| case.tools_place().clone());
    let wanted = match requested_tools(case, owner) {
        Ok(wanted) if wanted.is_empty() => return Vec::new(),
        Ok(wanted) => wanted,
        Err(problems) => return problems.into_iter().map(at_case).collect(),
    };
    let problems = match program(&wanted, directory, state).check() {
        Ok(value) => read(&wanted, &value, owner).err().unwrap_or_default(),
        Err(error) if is_of_the_program(&error) => vec![Diagnostic::error(error.to_string())],
        Err(error) => vec![error.diagnostic()],
    };
    problems.into_iter().map(at_case).collect()
}

/// Returns a warning about a file that a tool of `case` names and that does not exist, for an agent that does not run it.
pub(super) fn missing_file(case: &Case, directory: &Path) -> Option<Diagnostic> {
    const ENDINGS: [&str; 6] = ["ts", "mts", "cts", "js", "mjs", "cjs"];
    let file = |tool: &Json| {
        let reference = Reference::parse(tool.as_str()?).ok()?;
        let path = Path::new(reference.specifier());
        let is_module = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        let is_file = is_module && (path.starts_with(".") || path.starts_with(".."));
        (is_file && !directory.join(path).exists()).then(|| reference.specifier().to_owned())
    };
    let file = case.all_tools().find_map(file)?;
    let problem =
        Diagnostic::warning(format!("there is no file `{file}`, which `tools` name")).at(case.tools_place().clone());
    Some(problem.help("a path is relative to the directory of this file"))
}

impl OwnTools {
    /// Loads the tools of the trial's case.
    pub(super) async fn open(context: &SessionContext, owner: Owner) -> Result<Self, Breakage> {
        let broken = |reason: String| Breakage::environment(format!("the case's tools cannot be loaded: {reason}"));
        let all_broken = |problems: Vec<Diagnostic>| broken(joined(&problems));
        let wanted = requested_tools(&context.case, owner).map_err(all_broken)?;
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let program = program(&wanted, &context.directory, &context.state);
        let started = Engine::start(program, context.setup.timeout_ms).await;
        let (engine, value) = started.map_err(|error| broken(error.to_string()))?;
        Ok(Self { engine: Some(engine), tools: read(&wanted, &value, owner).map_err(all_broken)? })
    }

    /// Returns the descriptions of the tools for the model.
    pub(super) fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| &tool.spec)
    }

    /// Returns the index of the tool called `name`.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.spec.name == name)
    }

    /// Calls the tool with the index `at`. Returns `None` if the trial must stop.
    pub(super) async fn answer(
        &mut self,
        index: usize,
        input: &Json,
        turn: &mut Turn,
    ) -> Result<Option<ToolOutput>, Ending> {
        let (Some(engine), Some(tool)) = (&mut self.engine, self.tools.get(index)) else { return Ok(None) };
        turn.waiting("tool");
        match engine.call(&tool.execute, vec![Value::from(input)], turn).await {
            Ok(Ok(Value::Undefined | Value::Null)) => Ok(Some(Ok("(no output)".to_owned()))),
            Ok(Ok(Value::String(text))) => Ok(Some(Ok(text))),
            Ok(Ok(value)) => Ok(Some(Ok(value.to_json().to_string()))),
            // The test is at fault, and the agent could only be confused by it.
            Ok(Err(error)) if error.is_limit() => {
                let place = error.place().map(|place| format!("{place}: ")).unwrap_or_default();
                Err(Ending::InvalidTest { reason: format!("{place}the `{}` tool cannot run: {error}", tool.spec.name) })
            }
            Ok(Err(error)) => Ok(Some(Err(error.to_string()))),
            Err(Ending::Cancelled) => Ok(None),
            Err(ending) => Err(ending),
        }
    }
}

/// Returns the tools to which `case` refers, without duplicates. Names of the agent's own tools are skipped.
fn requested_tools(case: &Case, owner: Owner) -> Result<Vec<ToolReference>, Vec<Diagnostic>> {
    let mut seen: Vec<&Json> = Vec::new();
    let mut wanted = Vec::new();
    let mut problems = Vec::new();
    for written in case.all_tools() {
        if seen.contains(&written) {
            continue;
        }
        seen.push(written);
        match ToolReference::read(written, owner) {
            Ok(tool) => wanted.extend(tool),
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(wanted) } else { Err(problems) }
}

impl ToolReference {
    fn read(written: &Json, owner: Owner) -> Result<Option<Self>, Problem> {
        match written {
            Json::String(name) if owner.tools.contains(&name.as_str()) => Ok(None),
            Json::String(text) if !text.contains(['/', '.', '#']) => {
                let problem = Diagnostic::error(format!("`{}` has no tool named `{text}`", owner.agent))
                    .suggest(nearest(text, owner.tools.iter().copied()))
                    .help("a tool of your own is in a module: `./weather.js` or `./weather.js#forecast`");
                Err(Box::new(problem))
            }
            Json::String(text) => Ok(Some(Self { reference: reference(text)?, described: None })),
            Json::Object(described) => {
                let Some(name) = described.get("name").and_then(Json::as_str) else {
                    return wrong("a tool has no `name`", FORM);
                };
                let Some(execute) = described.get("execute").and_then(Json::as_str) else {
                    return wrong(
                        format!("the `{name}` tool has no `execute`"),
                        "name a module instead (`./weather.js#forecast`), or one of its functions: `execute: ./weather.js#run`",
                    );
                };
                Ok(Some(Self { reference: reference(execute)?, described: Some(described.clone()) }))
            }
            other => wrong(format!("a tool must be a reference to a module or an object, not {other}"), FORM),
        }
    }

    /// Returns the reference as written, for messages.
    fn text(&self) -> &str {
        self.reference.text()
    }

    /// Returns the path from the module to the tool, if the tool is not the whole module.
    fn keys(&self) -> Option<Vec<Json>> {
        self.reference.export().map(steps)
    }
}

/// Splits a path `name`, `name[0].execute`, or `[0]["a key"]`, which starts at the default export.
fn steps(path: &str) -> Vec<Json> {
    let mut steps = Vec::new();
    if path.starts_with('[') {
        steps.push(json!("default"));
    }
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Json>();
            let key = values.next().and_then(Result::ok);
            let after = inside.get(values.byte_offset()..).and_then(|after| after.strip_prefix(']'));
            if let (Some(key), Some(after)) = (key, after) {
                steps.push(key);
                rest = after;
                continue;
            }
        }
        let name = rest.strip_prefix('.').unwrap_or(rest);
        let end = name.char_indices().skip(1).find(|(_, letter)| matches!(letter, '.' | '[')).map(|(offset, _)| offset);
        let (name, after) = name.split_at(end.unwrap_or(name.len()));
        steps.push(json!(name));
        rest = after;
    }
    steps
}

fn reference(text: &str) -> Result<Reference, Problem> {
    Reference::parse(text).map_err(|error| {
        let problem = Diagnostic::error(format!("the `{text}` tool: {error}"));
        Box::new(error.help.into_iter().fold(problem, Diagnostic::help))
    })
}

/// Returns the program that loads the tools in `wanted`.
fn program(wanted: &[ToolReference], directory: &Path, state: &Arc<RunState>) -> Program {
    let mut specifiers: Vec<String> = Vec::new();
    let mut list = Vec::new();
    for tool in wanted {
        let specifier = tool.reference.specifier();
        let index = specifiers.iter().position(|known| known == specifier).unwrap_or_else(|| {
            specifiers.push(specifier.to_owned());
            specifiers.len() - 1
        });
        list.push(json!([index, tool.keys(), tool.reference.inferred_name(), tool.described]));
    }
    let directory = state.cwd.join(directory);
    Program {
        directory,
        modules: specifiers,
        text: format!("const wanted = {};\n{FIND}", Json::Array(list)),
        network: None,
        state: Arc::clone(state),
        is_shared: false,
    }
}

/// Reads the loaded tools, in the order of `wanted`.
fn read(wanted: &[ToolReference], found: &Value, owner: Owner) -> Result<Vec<OwnTool>, Vec<Diagnostic>> {
    let Value::List(found) = found else { return Err(vec![Diagnostic::error("no tool was found")]) };
    let mut tools: Vec<OwnTool> = Vec::new();
    let mut problems = Vec::new();
    for (wanted, found) in wanted.iter().zip(found) {
        match OwnTool::read(wanted, found, owner) {
            Ok(tool) if tools.iter().any(|other| other.spec.name == tool.spec.name) => {
                problems.push(Diagnostic::error(format!("two tools are called `{}`", tool.spec.name)));
            }
            Ok(tool) => tools.push(tool),
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(tools) } else { Err(problems) }
}

impl OwnTool {
    fn read(wanted: &ToolReference, found: &Value, owner: Owner) -> Result<Self, Problem> {
        let Some(Value::Function(execute)) = found.get("execute") else {
            return wrong(format!("`{}` is not a tool", wanted.text()), FORM);
        };
        let name = found.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        if name.is_empty() || name.len() > MAX_NAME_LEN || !name.chars().all(is_letter) {
            let help = format!("a name has at most {MAX_NAME_LEN} letters, digits, `_` and `-`");
            return wrong(format!("a tool cannot be called `{name}`"), &help);
        }
        if owner.tools.contains(&name) {
            return wrong(
                format!("`{}` already has a built-in tool named `{name}`", owner.agent),
                "give the case's tool another name",
            );
        }
        let parameters = found.get("parameters").map(Value::to_json).unwrap_or_default();
        let spec = ToolSpec {
            name: name.to_owned(),
            description: found.get("description").and_then(Value::as_str).map(str::to_owned),
            input_schema: schema(parameters, name)?,
            extra: Map::new(),
        };
        Ok(Self { spec, execute: execute.clone() })
    }
}

/// Returns the schema for a tool's arguments, which may be given as a schema or as a map of arguments.
fn schema(parameters: Json, name: &str) -> Result<Json, Problem> {
    match parameters {
        Json::Null => Ok(json!({"type": "object", "properties": {}})),
        Json::Object(schema) if schema.get("type").is_some_and(Json::is_string) || schema.contains_key("$schema") => {
            Ok(Json::Object(schema))
        }
        Json::Object(arguments) => {
            let about = |about: Json| if about.is_string() { json!({ "type": about }) } else { about };
            let properties = arguments.into_iter().map(|(name, value)| (name, about(value))).collect::<Map<_, _>>();
            Ok(json!({"type": "object", "properties": properties}))
        }
        other => wrong(
            format!("the `parameters` of the `{name}` tool must be an object, not {other}"),
            "they are a JSON Schema, or a map of the arguments",
        ),
    }
}

#[cfg(test)]
mod tests {
    use model::Step;

    use super::*;
    use crate::chat::{Chat, OWNER};
    use crate::tests::harness::{AgentHarness, TestRun, case, new_run};

    const WEATHER: &str = "import { unit } from './unit.ts';
export const forecast = {
    name: 'forecast',
    description: 'Tells the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    unit,
    async execute({ city }) {
        console.log(`asked for ${city}`);
        if (city === 'Atlantis') throw new RangeError('it is under water');
        return { city, unit: this.unit };
    },
};
export function shout({ text }) { return text.toUpperCase(); }
shout.description = 'Says it loudly';
shout.parameters = { text: 'string', times: { type: 'number' } };
export default [{ tools: [{ execute: () => undefined }] }];
";

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("weather.js"), WEATHER).unwrap();
        std::fs::write(dir.path().join("unit.ts"), "export const unit: string = '°C';").unwrap();
        dir
    }

    fn bringing(dir: &Path, tools: Json, steps: &Json) -> AgentHarness {
        let mut harness = AgentHarness { directory: dir.into(), ..AgentHarness::scripted("go", steps) };
        let Json::Array(tools) = tools else { panic!("a list") };
        harness.case.messages[0].tools = tools;
        harness
    }

    #[test]
    fn a_missing_file_of_a_tool_is_found_without_running_it() {
        let dir = folder();
        let missing = |tool: &str| {
            let case = bringing(dir.path(), json!([tool]), &json!([])).case;
            missing_file(&case, dir.path()).map(|problem| problem.message)
        };
        assert_eq!(missing("./wether.js#a"), Some("there is no file `./wether.js`, which `tools` name".to_owned()));
        for known in ["./weather.js#forecast", "./unit.ts", "weather", "package/tool.js", "Read"] {
            assert_eq!(missing(known), None, "{known}");
        }
    }

    fn met(played: &TestRun) -> bool {
        let checks = &played.turn.trace().request_checks;
        assert!(!checks.is_empty());
        checks.iter().all(|(_, met, _)| *met)
    }

    #[tokio::test]
    async fn a_tool_that_needs_what_scripts_do_not_have_is_a_mistake_in_the_test() {
        let dir = folder();
        let text = "export function money({ n }) { return new Intl.NumberFormat('de').format(n); }";
        std::fs::write(dir.path().join("intl.js"), text).unwrap();
        let steps = json!([{"tools": [{"name": "money", "input": {"n": 5}}]}, {"text": "done"}]);
        let played = bringing(dir.path(), json!(["./intl.js#money"]), &steps).play(&Chat).await.unwrap();
        let [model::Ending::InvalidTest { reason }] = played.endings.as_slice() else { panic!("{:?}", played.endings) };
        assert!(reason.contains("intl.js:1:") && reason.contains("Intl is not available here"), "{reason}");
    }

    #[tokio::test]
    async fn tools_of_a_case_are_offered_next_to_built_in_ones_and_run_when_called() {
        let dir = folder();
        let tools = json!([
            "Bash",
            "./weather.js#forecast",
            "js://./weather.js#shout",
            {"name": "quiet", "parameters": {}, "execute": "./weather.js#[0].tools[0].execute"},
        ]);
        let steps = json!([
            {"expect_request": {"tools_include": ["Bash", "forecast", "shout", "quiet"]}, "tools": [
                {"name": "forecast", "input": {"city": "Riga"}},
                {"name": "forecast", "input": {"city": "Atlantis"}},
                {"name": "shout", "input": {"text": "ho"}},
                {"name": "quiet", "input": {}},
                {"name": "Bash", "input": {"command": "echo hi"}},
            ]},
            {"text": "done", "expect_request": {"tool_result_contains": [r#"{"city":"Riga","unit":"°C"}"#, "HO"]}},
        ]);
        let mut played = bringing(dir.path(), tools, &steps).play(&Chat).await.unwrap();
        assert_eq!(
            played.calls(),
            [
                ("forecast", r#"{"city":"Riga","unit":"°C"}"#, false),
                ("forecast", "RangeError: it is under water", true),
                ("shout", "HO", false),
                ("quiet", "(no output)", false),
                ("Bash", "hi", false),
            ]
        );
        assert!(met(&played), "{:?}", played.turn.trace().request_checks);
        assert_eq!(played.answer(), Some("done"));
        let notices: Vec<_> = played
            .steps()
            .into_iter()
            .filter_map(|step| match step {
                Step::Notice { text, .. } => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(notices[..2], ["asked for Riga", "asked for Atlantis"]);
        assert!(notices[2].contains("weather.js:9:"), "{notices:?}");
    }

    #[tokio::test]
    async fn a_closed_list_also_applies_to_the_tools_of_a_case() {
        let dir = folder();
        let steps = json!([
            {"tools": [{"name": "shout", "input": {"text": "x"}}]},
            {"text": "done", "expect_request": {"tools_exclude": ["shout"]}},
        ]);
        let mut harness = bringing(dir.path(), json!(["./weather.js#shout"]), &steps);
        harness.setup.closed_tools = Some(vec!["Read".into()]);
        let played = harness.play(&Chat).await.unwrap();
        assert_eq!(played.calls(), [("shout", "No such tool: `shout`. Available tools: Read.", true)]);
        assert!(met(&played));
    }

    #[tokio::test]
    async fn a_script_is_added_to_the_system_prompt() {
        let dir = folder();
        std::fs::write(dir.path().join("prompt.md"), "You are {{terse}}.\n").unwrap();
        for (script, described) in [("prompt.md", "You are {{terse}}.\n"), ("Be kind.\nAlways.", "Be kind.\nAlways.")] {
            let steps =
                json!([{"text": "done", "expect_request": {"system_contains": [described, "You work on a task"]}}]);
            let mut harness = bringing(dir.path(), json!([]), &steps);
            harness.case.messages[0].script = Some(script.into());
            harness.setup.model = Some("scripted:a.yaml".into());
            assert_eq!(harness.check(&Chat), [""; 0]);
            assert!(met(&harness.play(&Chat).await.unwrap()));
        }
        let mut harness = bringing(dir.path(), json!([]), &json!([]));
        harness.setup.model = Some("scripted:a.yaml".into());
        harness.case.messages[0].script = Some("promt.md".into());
        let problems = harness.check(&Chat);
        assert!(problems[0].starts_with("case.yaml:1:1: cannot read the prompt `promt.md`: "), "{problems:?}");
        assert!(harness.play(&Chat).await.is_err());
    }

    #[test]
    fn invalid_tools_are_found_before_the_run() {
        let dir = folder();
        std::fs::write(dir.path().join("broken.js"), "export const a = ;").unwrap();
        std::fs::write(dir.path().join("odd.js"), "export const a = { name: 'a b', execute() {} }, b = 5;\nexport const read = { name: 'Read', execute() {} }, c = { name: 'c', parameters: 7, execute() {} };").unwrap();
        let problems = |tools: Json| -> Vec<String> {
            let mut case = case("a", &["go"]);
            let Json::Array(tools) = tools else { panic!("a list") };
            case.messages[0].tools = tools;
            check(&case, dir.path(), &new_run(), OWNER).iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems(json!(["Bash", "./weather.js#forecast", "./weather.js#forecast"])), [""; 0]);
        assert_eq!(
            problems(json!(["Reed", {"name": "x"}, {"execute": "./weather.js"}, 5, "py://x/y"])),
            [
                "case.yaml:1:1: `chat` has no tool named `Reed`",
                "case.yaml:1:1: the `x` tool has no `execute`",
                "case.yaml:1:1: a tool has no `name`",
                "case.yaml:1:1: a tool must be a reference to a module or an object, not 5",
                "case.yaml:1:1: the `py://x/y` tool: `py://` is not supported",
            ]
        );
        assert_eq!(
            problems(json!([
                "./odd.js#a",
                "./odd.js#b",
                "./odd.js#read",
                "./odd.js#c",
                "./weather.js",
                "./weather.js#none"
            ])),
            [
                "case.yaml:1:1: a tool cannot be called `a b`",
                "case.yaml:1:1: `./odd.js#b` is not a tool",
                "case.yaml:1:1: `chat` already has a built-in tool named `Read`",
                "case.yaml:1:1: the `parameters` of the `c` tool must be an object, not 7",
                "case.yaml:1:1: `./weather.js` is not a tool",
                "case.yaml:1:1: `./weather.js#none` is not a tool",
            ]
        );
        let twice = json!(["./weather.js#shout", {"name": "shout", "execute": "./weather.js#shout"}]);
        assert_eq!(problems(twice), ["case.yaml:1:1: two tools are called `shout`"]);
        assert!(problems(json!(["./broken.js"]))[0].contains("broken.js:1:"));
        assert!(
            problems(json!(["./none.js"]))[0].starts_with("case.yaml:1:1: "),
            "{:?}",
            problems(json!(["./none.js"]))
        );
    }

    #[test]
    fn parameters_are_a_schema_or_a_map_of_arguments() {
        let read = |parameters: Json| schema(parameters, "t").unwrap();
        let whole = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(read(whole.clone()), whole);
        assert_eq!(
            read(json!({"type": {"type": "string"}, "n": "number"})),
            json!({"type": "object", "properties": {"type": {"type": "string"}, "n": {"type": "number"}}})
        );
        assert_eq!(read(Json::Null), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn a_property_path_in_a_module_is_parsed_step_by_step() {
        assert_eq!(steps("forecast"), [json!("forecast")]);
        assert_eq!(
            steps("[3].tools[0][\"a b\"]"),
            [json!("default"), json!(3), json!("tools"), json!(0), json!("a b")]
        );
        assert_eq!(steps("a[b"), [json!("a"), json!("[b")]);
        assert_eq!(steps("[").len(), 2);
    }
}
