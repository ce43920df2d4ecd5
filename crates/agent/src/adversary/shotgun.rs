//! `shotgun`: calls every tool, reads and changes every file, and says everything it has seen. It passes assertions
//! that only require some particular action.

use model::tool::{Access, TOOLS};
use serde_json::{Value, json};

use super::observation::{Observation, SeenFile, with_comments};
use super::{Action, Adversary, Role};

/// Shell commands that coding agents use most often.
const COMMANDS: &str = "ls -la && git status && git diff && git diff --cached && git log && git add -A && git commit -m \
                        'change' && git push && npm install && npm test && pytest && cargo test && make && make test";

pub(super) static SHOTGUN: Adversary =
    Adversary::new("shotgun", Role::Busy, "calls every tool, touches every file and says everything it saw", act);

fn act(seen: &Observation<'_>) -> Vec<Action> {
    let files = seen.files();
    let mut actions = Vec::new();
    if let Some(skill) = seen.skill() {
        actions.push(Action::call("Skill", json!({ "skill": skill.file_name() })));
    }
    for tool in TOOLS.iter().filter(|tool| !matches!(tool.name, "Skill" | "AskUserQuestion" | "Write")) {
        let mut input = serde_json::Map::new();
        if let Some(key) = tool.key_argument {
            input.insert(key.to_owned(), Value::from(if tool.name == "Bash" { COMMANDS } else { seen.message }));
        }
        let takes_file = tool.paths.iter().any(|(key, _)| *key == "file_path");
        let reads_only = tool.paths.iter().all(|(_, access)| matches!(access, Access::Read));
        for file in files.iter().filter(|_| takes_file) {
            input.insert("file_path".to_owned(), Value::from(file.path.as_str()));
            let result = if reads_only { file.text.clone() } else { "ok".to_owned() };
            actions.push(Action::Call { tool: tool.name.to_owned(), input: Value::Object(input.clone()), result });
        }
        if !takes_file || files.is_empty() {
            actions.push(Action::call(tool.name, Value::Object(input)));
        }
    }
    actions.extend(seen.own_tools().into_iter().map(|tool| Action::call(tool, json!({ "input": seen.message }))));
    actions.extend(files.iter().map(|SeenFile { path, text }| Action::Write {
        path: path.clone(),
        content: with_comments(text, seen.message),
    }));
    let mut texts = vec![seen.message];
    texts.extend(seen.skill().map(|skill| skill.body.as_str()));
    texts.extend(files.iter().flat_map(|file| [file.path.as_str(), file.text.as_str()]));
    actions.push(Action::Say(texts.join("\n")));
    actions
}
