//! Mistakes of a script that show before it is played, if the tools that the agent will offer are known.

use model::{Diagnostic, DiagnosticKind, nearest};

use super::Script;
use super::step::Call;
use crate::ToolSpec;

impl Script {
    /// Returns warnings about calls in the main conversation of tools that are not among `tools`, and about their
    /// arguments. `tools` are all that the agent offers.
    pub fn preview(&self, tools: &[ToolSpec]) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let names = || tools.iter().map(|tool| tool.name.as_str());
        for step in self.steps.iter().filter(|step| step.fault.is_none()) {
            // A name that no agent has is reported where it is read.
            let is_unknown =
                |name: &&String| names().all(|known| known != *name) && model::tool::misspelt(name).is_none();
            for name in step.expect.tools_include.iter().filter(is_unknown) {
                if let (Some(near), Some(place)) = (nearest(name, names()), &step.expect.tools_source) {
                    let problem = Diagnostic::warning(format!("the agent does not offer a tool `{name}` to its model"));
                    problems.push(problem.at(place.clone()).suggest(Some(near)));
                }
            }
            for call in step.tools.iter().filter(|call| call.is_offered) {
                let tool =
                    tools.iter().find(|tool| tool.name == call.name.strip_prefix("functions.").unwrap_or(&call.name));
                problems.extend(match tool {
                    Some(tool) => call.doubtful_argument(tool),
                    None => {
                        let message =
                            format!("the script calls `{}`, which the agent does not offer to its model", call.name);
                        let problem = Diagnostic::warning(message).at(call.place.clone());
                        let problem = problem.suggest(nearest(&call.name, names()));
                        Some(problem.help("with `offered: false`, the script calls it anyway"))
                    }
                });
            }
        }
        problems.into_iter().map(|problem| problem.of(DiagnosticKind::ScriptedCall)).collect()
    }
}

impl Call {
    /// Returns a warning about the first argument that `tool` refuses, or that probably means another one.
    fn doubtful_argument(&self, tool: &ToolSpec) -> Option<Diagnostic> {
        let schema = &tool.input_schema;
        let known = schema.get("properties")?.as_object().filter(|known| !known.is_empty())?;
        let is_closed = schema.get("additionalProperties") == Some(&serde_json::Value::Bool(false));
        let Some(given) = self.input.as_object() else {
            let message = format!("the script calls `{}` with a text, not with a map of its arguments", self.name);
            let problem = Diagnostic::warning(message).at(self.input_place.clone());
            let first = schema
                .get("required")
                .and_then(|names| names.get(0)?.as_str())
                .or(known.keys().next().map(String::as_str));
            return Some(problem.help(format!("write `{{ {}: … }}`", first.unwrap_or("NAME"))));
        };
        let unused = || known.keys().map(String::as_str).filter(|key| !given.contains_key(*key));
        let wrong = |key: &&String| !known.contains_key(*key) && (is_closed || nearest(key, unused()).is_some());
        let wrong = given.keys().find(wrong)?;
        let message = format!("the script calls `{}` with `{wrong}`, which is not one of its arguments", self.name);
        let problem = Diagnostic::warning(message).at(self.input_place.clone());
        let problem = match nearest(wrong, unused()) {
            Some(near) => problem.help(format!("write `{near}` instead of `{wrong}`")),
            None => problem,
        };
        Some(problem.help(format!("it has {}", known.keys().map(String::as_str).collect::<Vec<_>>().join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    fn script(value: &serde_json::Value) -> Script {
        Script::from_node(&model::Node::from_json(value, &Source::new("m.yaml", ""))).unwrap()
    }

    fn tool(name: &str, is_closed: bool) -> ToolSpec {
        let input_schema = json!({"properties": {"state": {}}, "additionalProperties": !is_closed});
        ToolSpec { name: name.to_owned(), input_schema, ..ToolSpec::default() }
    }

    #[test]
    fn calls_that_the_tools_do_not_allow_are_found() {
        for (call, expected) in [
            (json!({"name": "Lits"}), Some("did you mean `List`?")),
            (json!({"name": "Lits", "offered": false}), None),
            (json!({"name": "List", "input": {"sate": 1}}), Some("write `state` instead of `sate`")),
            (json!({"name": "List", "input": {"other": 1}}), Some("it has state")),
            (json!({"name": "Open", "input": {"sate": 1}}), Some("write `state` instead of `sate`")),
            (json!({"name": "Open", "input": {"sate": 1, "state": 2}}), None),
            (json!({"name": "Open", "input": {"other": 1}}), None),
            (json!({"name": "List", "input": {"state": 1}}), None),
            (json!({"name": "List", "input": "open"}), Some("write `{ state: … }`")),
        ] {
            let found = script(&json!({"steps": [{"tools": [call.clone()]}]}))
                .preview(&[tool("List", true), tool("Open", false)]);
            assert_eq!(found.first().and_then(|problem| problem.help.first()).map(String::as_str), expected, "{call}");
        }
        let expects = script(&json!({"steps": [{"text": "a", "expect_request": {"tools_include": ["lits", "x"]}}]}));
        let found = expects.preview(&[tool("list", true)]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
