//! What may be written in a script, once, as tables: the reference is made from them, and a test holds them against
//! what the reader knows.

use std::fmt::Write as _;

use super::fault::KINDS;
use crate::reply::STOP_REASONS;

/// A complete script, as the reference shows it.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// A map with known keys.
struct Block {
    title: &'static str,
    about: &'static str,
    keys: &'static [Key],
}

/// A key, what may be written under it, and what that does.
struct Key {
    name: &'static str,
    value: &'static str,
    about: &'static str,
}

const fn key(name: &'static str, value: &'static str, about: &'static str) -> Key {
    Key { name, value, about }
}

const SCRIPT: Block = Block {
    title: "The file",
    about: "At least one of the two.",
    keys: &[
        key("steps", "list of steps", "The main conversation: what the model answers, request by request."),
        key(
            "conversations",
            "list of conversations",
            "What it answers elsewhere. The first that matches a request is taken.",
        ),
    ],
};

const STEP: Block = Block {
    title: "A step",
    about: "One answer. The order of its parts is fixed: thinking, text, tool calls.",
    keys: &[
        key("text", "text", "What the model says."),
        key("thinking", "text", "What it thinks first."),
        key("tools", "list of tool calls", "What it calls."),
        key("tool_calls", "list of tool calls", "Another name for `tools`."),
        key("usage", "map", "What the answer costs; without it, 100 tokens in and 10 out."),
        key("stop", "one of the stop reasons below", "Why it stops; `tool_use` if it calls tools, else `end_turn`."),
        key("stop_reason", "one of the stop reasons below", "Another name for `stop`."),
        key("delay", "seconds, or text such as `500ms`, `30s`, `5m`", "How long it takes before anything is sent."),
        key(
            "repeat",
            "whole number, or `forever`",
            "How many requests get this step, one after the other; 1 if left out.",
        ),
        key("fault", "map", "What goes wrong instead."),
        key("expect_request", "map", "What the request must say."),
    ],
};

const CALL: Block = Block {
    title: "A tool call",
    about: "",
    keys: &[
        key(
            "name",
            "text, required",
            "The tool, as the agent names it to its model; one in a namespace is `NAMESPACE.NAME`.",
        ),
        key("input", "map, or text", "The arguments; none if left out. A text is for tools that take one as it is."),
        key("id", "text", "The call's id; made up if left out, unique and the same every time."),
    ],
};

const USAGE: Block = Block {
    title: "`usage`",
    about: "Tokens. The four kinds do not overlap; what is left out is 0.",
    keys: &[
        key("input", "whole number", "Input that no cache had."),
        key("output", "whole number", "Output, thinking included."),
        key("cache_read", "whole number", "Input read from a cache."),
        key("cache_write", "whole number", "Input written to a cache."),
        key("reasoning", "whole number", "The part of the output that is thinking."),
    ],
};

const FAULT: Block = Block {
    title: "`fault`",
    about: "A step with a fault is used up by the requests that got it; the next request gets the next step.",
    keys: &[
        key("kind", "one of the kinds below, required", "What goes wrong."),
        key("times", "whole number, or `forever`", "How many requests it breaks; 1 if left out."),
        key("status", "400 to 599", "For `http`; 500 if left out."),
        key("headers", "map of texts", "For `http`, such as `retry-after`."),
        key("type", "text", "For `http` and `error_event`: the vendor's word for the error, if not the usual one."),
        key("message", "text", "For `http` and `error_event`: what the error says."),
    ],
};

const EXPECT: Block = Block {
    title: "`expect_request`",
    about: "Each condition is checked on every request that gets the step and recorded, met or not; the answer goes out either way. A text may be a list of texts, which must all be met. Texts are looked for as they are written, never as patterns.",
    keys: &[
        key("model", "text", "The model the agent asks for, exactly."),
        key(
            "system_contains",
            "text or texts",
            "In the system prompt, the system's messages within the conversation included.",
        ),
        key(
            "last_user_contains",
            "text or texts",
            "In the last user message that has text; tool results are not text.",
        ),
        key("tool_result_contains", "text or texts", "In the tool results that are new with this request."),
        key("contains", "text or texts", "Anywhere in the request."),
        key("not_contains", "text or texts", "Nowhere in the request."),
        key("tools_include", "name or names", "Among the tools the request offers."),
        key("tools_exclude", "name or names", "Not among the tools the request offers."),
    ],
};

const CONVERSATION: Block = Block {
    title: "A conversation",
    about: "Each sub-agent that sends an id of its own plays the steps from their beginning.",
    keys: &[
        key("match", "map, required", "Which requests belong to it."),
        key("steps", "list of steps, required", "What the model answers there."),
        key("name", "text", "What to call it in messages."),
    ],
};

const MATCH: Block = Block {
    title: "`match`",
    about: "All that is written must hold.",
    keys: &[
        key("subagent", "`true` or `false`", "Whether a sub-agent asks, as far as the agent marks them."),
        key("has_tools", "`true` or `false`", "Whether the request offers tools."),
        key("first_user_contains", "text or texts", "In the conversation's first user message."),
        key(
            "user_contains",
            "text or texts",
            "In what the user has said so far. Codex begins with messages of its own in the user's name, so what the user \
             said first is not in the first one.",
        ),
        key(
            "system_contains",
            "text or texts",
            "In the system prompt, the system's messages within the conversation included. Every agent lists its skills \
             there, so this tells the arm with a skill from the one without.",
        ),
    ],
};

const FAULT_KINDS: &[(&str, &str)] = &[
    ("http", "An error status instead of an answer."),
    ("cut", "The connection closes in the middle of the content."),
    ("malformed", "What is sent cannot be read."),
    ("hang", "Nothing is sent, not even headers, and the connection stays open."),
    ("hang_stream", "The answer begins, and then nothing more is sent."),
    ("error_event", "The answer begins, and then an error is sent within it. Outside a stream it is an error status."),
    ("sse_error", "Another name for `error_event`."),
];

/// The page on scripted models, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for block in [&SCRIPT, &STEP, &CALL, &USAGE, &FAULT, &EXPECT, &CONVERSATION, &MATCH] {
        let _ = write!(page, "\n## {}\n\n", block.title);
        if !block.about.is_empty() {
            let _ = write!(page, "{}\n\n", block.about);
        }
        page.push_str("| Key | Value | Meaning |\n|---|---|---|\n");
        for Key { name, value, about } in block.keys {
            let _ = writeln!(page, "| `{name}` | {value} | {about} |");
        }
        if block.title == STEP.title {
            let names = STOP_REASONS.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let _ = write!(page, "\nStop reasons: {names}.\n");
        }
        if block.title == FAULT.title {
            page.push_str("\n| Kind | What happens |\n|---|---|\n");
            for (name, _) in KINDS {
                let about = FAULT_KINDS.iter().find(|(kind, _)| kind == name).map_or("", |(_, about)| about);
                let _ = writeln!(page, "| `{name}` | {about} |");
            }
        }
    }
    let _ = write!(page, "\n## Example\n\n```yaml\n{EXAMPLE}```\n");
    page
}

const INTRODUCTION: &str = "\
# The scripted model

<!-- Generated by `trialrun reference --write`; do not edit. -->

`scripted:FILE` is a model that says what a YAML or JSON file tells it to. The embedded agent uses it in process; a real
agent CLI reaches it through the gateway on loopback, without a network, a key or cost, and with the same result every time.

- The n-th request of a conversation gets the n-th step, whatever it says.
- A request after the last step is refused, and the trial is broken by the test's fault: its script is too short.
- A sub-agent's request for which no conversation is written is refused likewise.
- A side request, such as one for a session's title, uses up no step: it has no tools, and gets the answer `ok` for no tokens.
- In every text `$SANDBOX` is the trial's working directory and `$HOME` the agent's home directory, unless a letter, a
  digit or `_` follows. `${HOME}` is left to the shell. Keys and numbers are sent as they are.
- Unknown keys are errors.
";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::specimen;
    use super::*;
    use crate::Script;

    /// The keys the reader knows where `text` has the key `zzzz`.
    fn keys_read(text: &str) -> Vec<String> {
        let problems = Script::from_node(&specimen::node("s.yaml", text)).unwrap_err();
        let unknown = problems.iter().find(|problem| problem.message.starts_with("unknown key `zzzz`"));
        let help = unknown.unwrap_or_else(|| panic!("{text}: {problems:#?}")).help.join("\n");
        let mut keys: Vec<_> = help.trim_start_matches("known keys: ").split(", ").map(str::to_owned).collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_tables_hold_exactly_the_keys_that_are_read() {
        for (block, text) in [
            (&SCRIPT, "zzzz: 1"),
            (&STEP, "steps: [{zzzz: 1}]"),
            (&CALL, "steps: [{tools: [{zzzz: 1}]}]"),
            (&USAGE, "steps: [{usage: {zzzz: 1}}]"),
            (&FAULT, "steps: [{fault: {zzzz: 1}}]"),
            (&EXPECT, "steps: [{expect_request: {zzzz: 1}}]"),
            (&CONVERSATION, "conversations: [{zzzz: 1}]"),
            (&MATCH, "conversations: [{match: {zzzz: 1}}]"),
        ] {
            let mut told: Vec<_> = block.keys.iter().map(|key| key.name.to_owned()).collect();
            told.sort();
            assert_eq!(keys_read(text), told, "{}", block.title);
        }
    }

    #[test]
    fn every_fault_is_explained_and_no_other() {
        let kinds: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
        let told: Vec<_> = FAULT_KINDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(kinds, told);
    }

    #[test]
    fn the_example_can_be_played() {
        let script = Script::from_node(&specimen::node("example.yaml", EXAMPLE)).unwrap();
        assert_eq!(script.len(), 4);
        assert_eq!(Arc::new(script).play(crate::Stage::default()).name(), "example.yaml");
        assert!(reference().contains(EXAMPLE));
    }
}
