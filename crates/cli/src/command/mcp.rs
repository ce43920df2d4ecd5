//! `trialrun mcp`: a server for the Model Context Protocol on stdin and stdout, for coding agents. Each tool runs a
//! command of this program in a separate process, so a tool prints exactly what a user would see.

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::error::CliError;
use crate::exit;
use crate::global::Global;

/// Maximum length of a result in characters; longer results are cut in the middle.
const MAX_RESULT_CHARS: usize = 60_000;

/// Instructions for the client's model.
const INSTRUCTIONS: &str = "Tests of AI agents, agent skills and prompts. Use `check` after each change of a test, \
                            `audit` to find out whether a test can fail, `run` to run it, and `show` to read why a trial \
                            failed.";

/// A tool that runs a command of this program.
struct CommandTool {
    name: &'static str,
    description: &'static str,
    /// True if the command changes nothing.
    is_read_only: bool,
    parameters: &'static [Parameter],
}

/// Parameter of a tool.
struct Parameter {
    name: &'static str,
    description: &'static str,
    kind: Kind,
}

/// Type of a parameter, and its place on the command line.
enum Kind {
    /// Texts after the options.
    Positional,
    /// A required string after the options.
    Required,
    /// Option that takes a string.
    Text(&'static str),
    /// Option that takes a string and can be repeated.
    Texts(&'static str),
    /// Option that takes a whole number.
    Count(&'static str),
    /// Option that takes a number of trials, which may be `auto`.
    Trials(&'static str),
    /// Option without a value.
    Flag(&'static str),
}

const fn parameter(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, description, kind }
}

const PATHS: Parameter =
    parameter("paths", Kind::Positional, "Files, folders or skills; default: all tests of the project");
const CASES: Parameter = parameter("cases", Kind::Texts("--case"), "Only cases with these ids");

/// All tools.
const TOOLS: [CommandTool; 6] = [
    CommandTool {
        name: "list",
        description: "List the tests of the project and the agent of each.",
        is_read_only: true,
        parameters: &[PATHS],
    },
    CommandTool {
        name: "check",
        description: "Read and compile tests, and report every mistake with its line. Does not run anything.",
        is_read_only: true,
        parameters: &[PATHS],
    },
    CommandTool {
        name: "run",
        description: "Run tests and record the run. Agents may take minutes and cost money. Exit code 0: all passed, 1: an \
                      agent failed, 2: a test is invalid, 3: a trial is broken or undecided.",
        is_read_only: false,
        parameters: &[
            PATHS,
            CASES,
            parameter("agent", Kind::Text("--agent"), "Agent to run the cases with"),
            parameter("model", Kind::Text("--model"), "Model of the agent"),
            parameter(
                "trials",
                Kind::Trials("--trials"),
                "Number of trials of each case; `auto` or `auto:MAX` runs as many as needed to decide it, at most MAX",
            ),
            parameter("label", Kind::Text("--label"), "Label of the run, for `compare`"),
            parameter("last_failed", Kind::Flag("--last-failed"), "Only cases that did not pass in the last run"),
        ],
    },
    CommandTool {
        name: "show",
        description: "Show a trial with its transcript and the reason for each verdict.",
        is_read_only: true,
        parameters: &[
            parameter(
                "trial",
                Kind::Required,
                "Id or case of a trial of the last run, or a prefix of either; `RUN/TRIAL` selects another run",
            ),
            parameter("step", Kind::Count("--step"), "Only this step of the conversation, in full"),
        ],
    },
    CommandTool {
        name: "compare",
        description: "Compare two runs: the cases that got better or worse, with p-values. Exit code 1: a regression.",
        is_read_only: true,
        parameters: &[
            parameter("before", Kind::Text("--before"), "Earlier run: id, label or `previous`"),
            parameter("after", Kind::Text("--after"), "Later run: id, label or `latest`"),
        ],
    },
    CommandTool {
        name: "audit",
        description: "Find out whether tests can fail: run them with agents that do not do the work. Needs no model. Exit \
                      code 1: a test has a weakness.",
        is_read_only: true,
        parameters: &[PATHS, CASES],
    },
];

impl CommandTool {
    fn definition(&self) -> Tool {
        let property = |parameter: &Parameter| {
            let description = parameter.description;
            let schema = match parameter.kind {
                Kind::Positional | Kind::Texts(_) => {
                    json!({ "type": "array", "items": { "type": "string" }, "description": description })
                }
                Kind::Required | Kind::Text(_) => json!({ "type": "string", "description": description }),
                Kind::Count(_) => json!({ "type": "integer", "minimum": 1, "description": description }),
                Kind::Trials(_) => {
                    let number = json!({ "type": "integer", "minimum": 1, "maximum": model::MOST_TRIALS });
                    let auto = json!({ "type": "string", "pattern": "^auto(:[1-9][0-9]*)?$" });
                    json!({ "anyOf": [number, auto], "description": description })
                }
                Kind::Flag(_) => json!({ "type": "boolean", "description": description }),
            };
            (parameter.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        let is_required = |parameter: &&Parameter| matches!(parameter.kind, Kind::Required);
        let required: Vec<&str> = self.parameters.iter().filter(is_required).map(|parameter| parameter.name).collect();
        schema.insert("required".to_owned(), json!(required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        let annotations = ToolAnnotations::new().read_only(self.is_read_only).destructive(false);
        Tool::new(self.name, self.description, Arc::new(schema)).with_annotations(annotations)
    }

    /// Returns the command line for these arguments. A value is always part of an option or comes after `--`, so that
    /// it is never parsed as an option.
    fn command_line(&self, arguments: &JsonObject) -> Result<Vec<String>, String> {
        let names = || self.parameters.iter().map(|parameter| parameter.name);
        if let Some(unknown) = arguments.keys().find(|name| names().all(|known| known != name.as_str())) {
            let near = model::nearest(unknown, names()).map(|near| format!(" (did you mean `{near}`?)"));
            return Err(format!("`{unknown}` is not a parameter of `{}`{}", self.name, near.unwrap_or_default()));
        }
        let (mut options, mut positional) = (vec![self.name.to_owned()], Vec::new());
        for Parameter { name, kind, .. } in self.parameters {
            let Some(value) = arguments.get(*name).filter(|value| !value.is_null()) else {
                if matches!(kind, Kind::Required) {
                    return Err(format!("`{}` needs `{name}`", self.name));
                }
                continue;
            };
            let wrong = |expected: &str| format!("`{name}` must be {expected}");
            let text = || value.as_str().ok_or_else(|| wrong("a string"));
            let texts = || {
                let items = value.as_array().map(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
                items.flatten().ok_or_else(|| wrong("a list of strings"))
            };
            match kind {
                Kind::Positional => positional.extend(texts()?.into_iter().map(str::to_owned)),
                Kind::Required => positional.push(text()?.to_owned()),
                Kind::Text(option) => options.push(format!("{option}={}", text()?)),
                Kind::Texts(option) => options.extend(texts()?.into_iter().map(|text| format!("{option}={text}"))),
                Kind::Count(option) => {
                    let count = value.as_u64().ok_or_else(|| wrong("a whole number"))?;
                    options.push(format!("{option}={count}"));
                }
                Kind::Trials(option) => {
                    let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let trials = written.parse::<model::Trials>().map_err(|expected| wrong(&expected.to_string()))?;
                    options.push(format!("{option}={trials}"));
                }
                Kind::Flag(option) => {
                    if value.as_bool().ok_or_else(|| wrong("true or false"))? {
                        options.push((*option).to_owned());
                    }
                }
            }
        }
        if !positional.is_empty() {
            options.push("--".to_owned());
            options.extend(positional);
        }
        Ok(options)
    }
}

/// The server.
struct Server {
    /// Options that apply to every command.
    global: Vec<OsString>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("trialrun", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(CommandTool::definition).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("unknown tool `{}`; tools: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let line = tool.command_line(&arguments).map_err(|message| ErrorData::invalid_params(message, None))?;
        let failed = |error: std::io::Error| {
            let message: Cow<'static, str> = format!("cannot run trialrun: {error}").into();
            ErrorData::internal_error(message, None)
        };
        let child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(&self.global)
            .args(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let output = child.wait_with_output();
        tokio::pin!(output);
        let output = tokio::select! {
            output = &mut output => output,
            () = context.ct.cancelled() => {
                // As with Ctrl-C, agents are stopped and sandboxes removed.
                if let Some(pid) = pid {
                    let _ = kill(pid, Signal::SIGINT);
                }
                output.await
            }
        };
        Ok(result(&output.map_err(failed)?).into())
    }
}

/// Returns the output of a command, with its exit code. Only a command that could not do its work is an error: a
/// failed test is a result.
fn result(output: &std::process::Output) -> CallToolResult {
    let code = output.status.code();
    let printed = [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream).trim_end().to_owned());
    let text: Vec<String> = printed.into_iter().filter(|text| !text.is_empty()).collect();
    let code_text = code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"));
    let text = format!(
        "{}\n\n{code_text}",
        model::text::middle(text.join("\n\n"), MAX_RESULT_CHARS - MAX_RESULT_CHARS / 2, MAX_RESULT_CHARS)
    );
    let is_result =
        code.is_some_and(|code| [exit::PASSED, exit::FAILED, exit::INCOMPLETE].map(i32::from).contains(&code));
    let content = vec![ContentBlock::text(text)];
    if is_result { CallToolResult::success(content) } else { CallToolResult::error(content) }
}

/// Serves until the client closes stdin.
pub fn run(global: &Global) -> Result<ExitCode, CliError> {
    let failed = |error: std::io::Error| CliError::environment(format!("cannot start the server: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let served = runtime.block_on(async {
        let state = global.state.iter().flat_map(|state| ["--state".into(), state.clone().into_os_string()]);
        let server = Server { global: state.chain(["--color=never".into()]).collect() };
        let service = server.serve(rmcp::transport::io::stdio()).await.map_err(|error| error.to_string())?;
        service.waiting().await.map_err(|error| error.to_string())
    });
    // A read of stdin may still be blocked.
    runtime.shutdown_background();
    served.map_err(|error| CliError::environment(format!("the connection to the client ended: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tool: &str, arguments: &Value) -> Result<String, String> {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        tool.command_line(arguments.as_object().unwrap()).map(|words| words.join(" "))
    }

    #[test]
    fn arguments_become_a_command_line_without_new_options() {
        let all = json!({ "paths": ["--help", "a.yaml"], "cases": ["-x"], "trials": 3, "last_failed": true });
        assert_eq!(line("run", &all).unwrap(), "run --case=-x --trials=3 --last-failed -- --help a.yaml");
        assert_eq!(line("show", &json!({ "trial": "a", "step": null })).unwrap(), "show -- a");
        assert_eq!(line("run", &json!({ "last_failed": false })).unwrap(), "run");
        assert_eq!(line("run", &json!({ "trials": "auto" })).unwrap(), "run --trials=auto:40");
        assert_eq!(line("run", &json!({ "trials": "auto:12" })).unwrap(), "run --trials=auto:12");
    }

    #[test]
    fn wrong_arguments_are_explained() {
        let wrong = |tool: &str, arguments: Value| line(tool, &arguments).unwrap_err();
        assert_eq!(
            wrong("run", json!({ "path": ["a"] })),
            "`path` is not a parameter of `run` (did you mean `paths`?)"
        );
        assert_eq!(wrong("run", json!({ "paths": "a" })), "`paths` must be a list of strings");
        assert_eq!(wrong("show", json!({})), "`show` needs `trial`");
        assert_eq!(wrong("show", json!({ "trial": "a", "step": -1 })), "`step` must be a whole number");
        for trials in [json!(-1), json!(0), json!(2.5), json!("auto:0"), json!("many"), json!([3]), json!(true)] {
            assert_eq!(
                wrong("run", json!({ "trials": trials })),
                "`trials` must be a number from 1 to 100000, `auto` or `auto:MAX`, such as `auto:40`"
            );
        }
    }
}
