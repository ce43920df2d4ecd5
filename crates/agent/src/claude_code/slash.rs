//! Skills that the user requests with `/NAME`: the CLI adds them to the conversation without reporting it.

use model::{Step, ToolCall, ToolResult};
use serde_json::{Value, json};

/// Raw tool name of a call that was not made by the model itself.
const RAW_NAME: &str = "/";

/// The skill that a message requests.
#[derive(Debug, Default)]
pub(super) struct Slash {
    /// Text after the `/` at the beginning of the message.
    name: Option<String>,
    /// Rest of the message.
    args: String,
    /// The skill with that name, once the CLI has reported that it exists.
    skill: Option<String>,
}

impl Slash {
    /// Parses `message`. As in the CLI, only a `/` at the very beginning counts.
    pub(super) fn from_message(message: &str) -> Self {
        let Some(rest) = message.strip_prefix('/') else { return Self::default() };
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Self { name, args: args.trim().to_owned(), skill: None }
    }

    /// Reads the available skills from `init`, which comes with every message. It lists the skill of a plug-in as
    /// `PLUGIN:NAME`.
    pub(super) fn offered(&mut self, init: &Value) {
        let Some(name) = &self.name else { return };
        let skills = init.get("skills").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_it = |skill: &&str| *skill == name || skill.rsplit(':').next() == Some(name);
        self.skill = skills.iter().filter_map(Value::as_str).find(is_it).map(str::to_owned);
    }

    /// Returns the call for the requested skill, once, as the first step of the model's message `message`. The content
    /// of its result is unknown.
    pub(super) fn take(&mut self, message: &str) -> Option<[Step; 2]> {
        let skill = self.skill.take()?;
        let id = format!("{message}-skill");
        let mut call = ToolCall::new(&id, "Skill", json!({"skill": skill, "args": self.args}), message);
        RAW_NAME.clone_into(&mut call.raw_name);
        let result = ToolResult { id, content: String::new(), is_error: false };
        Some([Step::ToolCall(call), Step::ToolResult(result)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invoked(message: &str, skills: &Value) -> Option<Value> {
        let mut slash = Slash::from_message(message);
        slash.offered(&json!({"skills": skills}));
        let steps = slash.take("m1")?;
        assert!(slash.take("m2").is_none(), "a skill is asked for once");
        let Step::ToolCall(call) = &steps[0] else { panic!("{steps:?}") };
        assert_eq!((call.name.as_str(), call.raw_name.as_str(), call.message.as_str()), ("Skill", "/", "m1"));
        Some(call.input.clone())
    }

    #[test]
    fn a_message_that_begins_with_the_name_of_a_skill_invokes_it() {
        let skills = json!(["other", "greet"]);
        assert_eq!(invoked("/greet Ada\nand Bob", &skills), Some(json!({"skill": "greet", "args": "Ada\nand Bob"})));
        assert_eq!(invoked("/greet", &skills), Some(json!({"skill": "greet", "args": ""})));
        assert_eq!(invoked("/greet", &json!(["greet:greet"])), Some(json!({"skill": "greet:greet", "args": ""})));
        for message in ["greet", " /greet", "Please /greet", "/", "/greeting", "/compact", "Use the $greet skill."] {
            assert_eq!(invoked(message, &skills), None, "{message:?}");
        }
        assert_eq!(invoked("/greet", &Value::Null), None);
    }
}
