//! What may be written in a conversation.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{ASSERTION, Block, FIXTURES, Kind, RUNNER, USER_RESPONSE, document_schema, field, required};

static CONVERSATION: Block = Block {
    name: "conversation",
    about: "One case in one file. It has `turns`, a `user`, or both.",
    open: false,
    either_case: false,
    fields: &[
        field("name", Kind::Text, "What the case is called. Not written: what the file is called."),
        field("id", Kind::Text, "The case's id, unique in its suite, where it is not its name."),
        field("description", Kind::AnyText, "A note for people."),
        field("tags", Kind::Texts, "For selection on the command line."),
        field("persona", Kind::TextOrMap(&PERSONA), "Who speaks: a role, or more about it. Agents may be told."),
        field("turns", Kind::TextsOrMaps(&TURN), "What the user says, one after the other, in one session."),
        field("user", Kind::Map(&USER), "A user that a model plays, once the turns are said."),
        field(
            "assertions",
            Kind::Assertions(&ASSERTION),
            "What must hold of the last reply, and of what the agent left behind.",
        ),
        field("agent", Kind::Text, "The agent to run, such as `chat` or one of the project's `agents`."),
        field(
            "model",
            Kind::Text,
            "The model to run it on, or `scripted:FILE` with a path that starts at this file's directory.",
        ),
        field(
            "tools",
            Kind::Any,
            "A list of tools that the agent is to have, each in a module: `./tools.ts#lookup_order`. An assistant's \
             function tools are answered by those of the same name.",
        ),
        field("runner", Kind::Map(&RUNNER), "How the agent is run."),
        field("max_turns", Kind::Whole(1), "The most model turns of the agent over all messages."),
        field("token_budget", Kind::Positive, "The most tokens a trial may use, of every kind."),
        field("timeout", Kind::Duration, "Wall clock for one trial."),
        field("trials", Kind::Whole(1), "How often the case is repeated."),
        field("reruns", Kind::Whole(0), "How often a failed trial is run again; a pass after that is flaky."),
        field("skip", Kind::FlagOrText, "The case is not run; a text says why."),
        field("fixtures", Kind::Map(&FIXTURES), "What the sandbox holds before the agent starts."),
        field(
            "user_responses",
            Kind::List(&USER_RESPONSE),
            "Answers to the agent's questions. Each is used once, by the first question it matches.",
        ),
    ],
};

static PERSONA: Block = Block {
    name: "persona",
    about: "Who speaks.",
    open: false,
    either_case: false,
    fields: &[
        required("role", Kind::Text, "What the person is to the agent, such as `customer`."),
        field("name", Kind::Text, "What the person is called."),
        field("tone", Kind::Text, "How the person speaks, such as `frustrated`."),
        field("backstory", Kind::Text, "What happened before."),
        field("context", Kind::Any, "What else is known, as you like it."),
    ],
};

static TURN: Block = Block {
    name: "turn",
    about: "Something the user says; a text alone is what `says` holds.",
    open: false,
    either_case: false,
    fields: &[
        required("says", Kind::Text, "The message, sent as it is written."),
        field(
            "expect",
            Kind::Assertions(&ASSERTION),
            "What must hold of the reply to it, and of what was done for it.",
        ),
        field("persona", Kind::TextOrMap(&PERSONA), "Who says it, if not the conversation's persona."),
    ],
};

static USER: Block = Block {
    name: "user",
    about: "A user that a model plays. It speaks until its goal is reached, or it has nothing more to say.",
    open: false,
    either_case: false,
    fields: &[
        required("goal", Kind::Text, "What the user wants."),
        field("persona", Kind::TextOrMap(&PERSONA), "Who it is, if not the conversation's persona."),
        field("stop_when", Kind::Text, "When the user has nothing more to say."),
        field("max_turns", Kind::Whole(1), "The most messages the user sends. Not written: 10."),
        field("model", Kind::Text, "The model that plays, as `provider:model`. Not written: the project's judge."),
    ],
};

/// A conversation that shows how one looks.
const EXAMPLE: &str = "\
name: returns and refunds
tags: [smoke]
persona: { role: customer, tone: frustrated, backstory: Bought a lamp that broke. }
turns:
  - says: What is the return policy?
    expect:
      - contains: 30 days
      - latency: 2s
  - says: Then take back order 17.
    expect:
      - tool_called: { tool: lookup_order, args_match: { id: \"17\" } }
assertions:
  - not_contains: your fault
  - matches: /refund(ed)?/i
  - type: tool_not_called
    tool: delete_order
    weight: 2
";

/// The reference of conversations in Markdown.
pub fn conversation_reference() -> String {
    let mut text =
        String::from("# Conversations\n\n<!-- Generated by `trialrun reference --write`; do not edit. -->\n\n");
    text.push_str(
        "A YAML or JSON file with what a user says, turn by turn, and what must hold of the replies. Such files are found \
         wherever [scenario files](scenario.md) are, and in the project's folder of tests. Keys are checked: one that \
         nobody knows is an error.\n\n\
         What a turn expects is judged by the reply to it alone: the answer, and the calls, tokens and time it took. \
         `assertions` are judged by the last reply. [Assertions](assertions.md) are written with their type as the only \
         key, or with a `type`; a type that needs no argument may stand alone.\n\n\
         A conversation of which nothing is asserted has checked nothing. Its trials are undecided: they do not pass, \
         and nobody is blamed.\n",
    );
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## An example\n\n```yaml\n{EXAMPLE}```\n");
    for (title, block) in [
        ("A conversation", &CONVERSATION),
        ("An item of `turns`", &TURN),
        ("`persona`", &PERSONA),
        ("`user`", &USER),
        ("An item of `assertions` and `expect`", &ASSERTION),
    ] {
        block.write(title, &mut text);
    }
    text.push_str("\n`runner`, `fixtures` and `user_responses` are as in [scenario files](scenario.md).\n");
    text
}

/// A JSON Schema for conversations, for editors.
pub fn conversation_schema(assertion: Value) -> Value {
    let mut schema = document_schema(&CONVERSATION);
    schema.insert("anyOf".to_owned(), json!([{ "required": ["turns"] }, { "required": ["user"] }]));
    super::with_assertion(schema, assertion)
}

#[cfg(test)]
mod tests {
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
    fn the_example_loads_and_the_page_is_right() {
        let loaded = loaded(EXAMPLE);
        assert_eq!((&loaded.diagnostics, &loaded.suites[0].cases[0].broken), (&vec![], &vec![]));
        assert_eq!((loaded.suites[0].format, loaded.suites[0].cases[0].assertions.len()), ("conversation", 6));
        let page = conversation_reference();
        for block in [&CONVERSATION, &TURN, &PERSONA, &USER] {
            assert!(block.fields.iter().all(|field| page.contains(&format!("| `{}` |", field.key))), "{}", block.name);
        }
    }

    #[test]
    fn the_page_says_how_long_a_played_user_speaks() {
        let played = loaded("user: {goal: x}\nassertions: [{contains: x}]").suites[0].cases[0].user.clone().unwrap();
        let told = format!("Not written: {}.", played.max_turns);
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
