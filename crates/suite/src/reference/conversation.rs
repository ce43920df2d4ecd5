//! Fields of conversations.

use serde_json::{Value, json};

use super::{ASSERTION, Block, FIXTURES, Kind, RUNNER, USER_RESPONSE, block, document_schema, field, required};

pub(super) static CONVERSATION: Block = block(
    "conversation",
    "One case in one file. It has `turns`, a `user`, or both.",
    &[
        field("name", Kind::Text, "Name of the case. Default: the name of the file."),
        field("id", Kind::Text, "Id of the case, unique in its suite. Default: its name."),
        field("description", Kind::AnyText, "A note for people."),
        field("tags", Kind::Texts, "Tags, to select cases on the command line."),
        field(
            "persona",
            Kind::TextOrMap(&PERSONA),
            "Persona of the user: a role, or a map. It is passed to agents that support it.",
        ),
        field("turns", Kind::TextsOrMaps(&TURN), "Messages of the user, sent one after the other in one session."),
        field("user", Kind::Map(&USER), "A user played by a model, after the `turns`."),
        field(
            "assertions",
            Kind::Assertions(&ASSERTION),
            "Assertions about the last reply and the state that the agent left behind.",
        ),
        field("agent", Kind::Text, "Agent to run, such as `chat` or one of the project's `agents`."),
        field("model", Kind::Text, "Model of the agent, or `scripted:FILE`, relative to this file's folder."),
        field(
            "tools",
            Kind::Any,
            "Tools for the agent, each in a module: `./tools.ts#lookup_order`. For an `assistant`, they answer \
             its function tools of the same name.",
        ),
        field("runner", Kind::Map(&RUNNER), "Settings of the agent."),
        field("max_turns", Kind::Whole(1), "Maximum number of model turns over all messages."),
        field("token_budget", Kind::Positive, "Maximum number of tokens of a trial, of all kinds."),
        field("timeout", Kind::Duration, "Time limit of one trial."),
        field("trials", Kind::Whole(1), "Number of times that the case runs."),
        field(
            "reruns",
            Kind::Whole(0),
            "Number of times that a failed trial is run again. A trial that passes then is reported as flaky.",
        ),
        field("skip", Kind::FlagOrText, "`true`, or a reason: the case does not run."),
        field("fixtures", Kind::Map(&FIXTURES), "Contents of the sandbox before the agent starts."),
        field(
            "user_responses",
            Kind::List(&USER_RESPONSE),
            "Answers to the agent's questions. Each is used once, for the first question that it matches.",
        ),
    ],
);

static PERSONA: Block = block(
    "persona",
    "Persona of the user.",
    &[
        required("role", Kind::Text, "Role of the user, such as `customer`."),
        field("name", Kind::Text, "Name of the user."),
        field("tone", Kind::Text, "Tone, such as `frustrated`."),
        field("backstory", Kind::Text, "Story so far."),
        field("context", Kind::Any, "Any further information."),
    ],
);

static TURN: Block = block(
    "turn",
    "One message of the user. A string stands for `says`.",
    &[
        required("says", Kind::Text, "Message, sent as it is written."),
        field("expect", Kind::Assertions(&ASSERTION), "Assertions about the reply and the tool calls of this turn."),
        field("persona", Kind::TextOrMap(&PERSONA), "Persona of this turn. Default: that of the conversation."),
    ],
);

static USER: Block = block(
    "user",
    "A user played by a model. It sends messages until it reaches its goal or has nothing more to say.",
    &[
        required("goal", Kind::Text, "Goal of the user."),
        field("persona", Kind::TextOrMap(&PERSONA), "Persona of this user. Default: that of the conversation."),
        field("stop_when", Kind::Text, "Condition under which the user stops."),
        field("max_turns", Kind::Whole(1), "Maximum number of messages of the user. Default: 10."),
        field("model", Kind::Text, "Model that plays the user, as `provider:model`. Default: the project's judge."),
    ],
);

/// The blocks that only conversations have.
pub(super) static BLOCKS: [&Block; 3] = [&TURN, &PERSONA, &USER];

/// A JSON Schema for conversations, for editors.
pub fn conversation_schema(assertion: Value) -> Value {
    let mut schema = document_schema(&CONVERSATION);
    schema.insert("anyOf".to_owned(), json!([{ "required": ["turns"] }, { "required": ["user"] }]));
    super::with_assertion(schema, assertion)
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::super::{COPY_TREE, FILE};
    use super::*;
    use crate::{Request, load};

    fn loaded(text: &str) -> crate::Loaded {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("scenarios")).unwrap();
        std::fs::write(root.join("scenarios/c.yaml"), text).unwrap();
        load(&Request {
            root: root.to_owned(),
            skills_dir: root.join("skills"),
            cwd: root.to_owned(),
            ..Request::default()
        })
    }

    #[test]
    fn the_tables_hold_exactly_the_keys_that_are_read() {
        for (block, text) in [
            (&CONVERSATION, "turns: [x]\n'0000': x"),
            (&PERSONA, "turns: [x]\npersona: {role: x, '0000': x}"),
            (&TURN, "turns: [{says: x, '0000': x}]"),
            (&USER, "user: {goal: x, '0000': x}"),
        ] {
            let loaded = loaded(text);
            let diagnostics = &loaded.suites[0].cases[0].broken;
            let unknown = diagnostics.iter().find(|problem| problem.message.starts_with("unknown key `0000`"));
            let help = unknown.unwrap_or_else(|| panic!("{text}: {diagnostics:#?}")).help.join("\n");
            let mut read: Vec<&str> = help.trim_start_matches("known keys: ").split(", ").collect();
            let mut told: Vec<&str> = block.fields.iter().map(|field| field.key).collect();
            read.sort_unstable();
            told.sort_unstable();
            assert_eq!(read, told, "{}", block.name);
        }
    }

    #[test]
    fn the_example_loads() {
        let loaded = loaded(example(include_str!("../../../../docs/reference/conversation.md")));
        assert_eq!((&loaded.diagnostics, &loaded.suites[0].cases[0].broken), (&vec![], &vec![]));
        assert_eq!((loaded.suites[0].format, loaded.suites[0].cases[0].assertions.len()), ("conversation", 6));
    }

    #[test]
    fn the_page_says_how_long_a_played_user_speaks() {
        let played = loaded("user: {goal: x}\nassertions: [{contains: x}]").suites[0].cases[0].user.clone().unwrap();
        let told = format!("Default: {}.", played.max_turns);
        assert!(USER.fields.iter().any(|field| field.key == "max_turns" && field.about.contains(&told)));
    }

    #[test]
    fn every_reference_in_the_schema_is_defined() {
        let schema = conversation_schema(json!({ "properties": {} }));
        let text = schema.to_string();
        for reference in text.split("#/definitions/").skip(1) {
            let name = &reference[..reference.find('"').unwrap()];
            assert!(schema["definitions"][name]["properties"].is_object(), "{name}");
        }
    }

    #[test]
    fn the_fixtures_are_those_of_scenarios() {
        let schema = conversation_schema(json!({ "properties": {} }));
        for block in [&FIXTURES, &RUNNER, &COPY_TREE, &FILE, &USER_RESPONSE] {
            assert!(schema["definitions"][block.name].is_object(), "{}", block.name);
        }
    }
}
