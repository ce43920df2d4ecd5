//! Writing: asks a model for the messages and assertions of a planned test.

use std::path::{Component, Path};

use llm::{Conversation, Message, Request, ResponseSchema, Role};
use serde_json::{Value, json};

use crate::answer;
use crate::brief::brief;
use crate::candidate::{AssertionKind, PlannedTest, TestScript};
use crate::category::Category;
use crate::format::Format;
use crate::profile::{Evidence, EvidenceKind, Profile};
use crate::prompt::{Fence, write as prompt};
use crate::target::Target;

/// Maximum number of messages in a test.
const MOST_TURNS: usize = 6;
/// Maximum number of assertions about one reply.
const MOST_ASSERTIONS: usize = 12;
/// Maximum length of a text in a test, in characters.
const LONGEST: usize = 4000;

/// Everything on which the writing of a test depends.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    pub profile: &'a Profile,
    pub targets: &'a [Target],
    pub format: &'static Format,
    pub skill: Option<&'a str>,
}

/// A rejected test, and the reasons.
pub(crate) struct Rejected<'a> {
    pub script: &'a Value,
    pub reasons: &'a [String],
}

impl Writing<'_> {
    /// Returns the request for a test, or for a better one than `rejected`.
    pub fn request(
        &self,
        planned: &PlannedTest,
        category: &'static Category,
        rejected: Option<&Rejected<'_>>,
    ) -> Request {
        let data = brief(self.profile, self.targets);
        let fence = Fence::around(&data);
        let types = AssertionKind::ALL.into_iter().filter(|kind| self.format.can_assert(*kind)).map(|kind| {
            let needs = kind.needs();
            format!("- `{}`: {}", needs.name, needs.doc)
        });
        let system = [
            prompt::ROLE.to_owned(),
            fence.rule(),
            prompt::TYPES.replace("{types}", &types.collect::<Vec<_>>().join("\n")),
            prompt::RULES.replace("{rules}", &self.rules(category).join(" ")),
        ];
        let task = json!({
            "category": category.name,
            "purpose": category.purpose,
            "name": planned.name,
            "why": planned.why,
            "covers": planned.covers,
            "situation": planned.situation,
            "success": planned.success,
            "failure": planned.failure,
        });
        let mut messages =
            vec![Message::text(Role::User, format!("{}\n\nThe planned test: {task}", fence.enclose(&data)))];
        if let Some(Rejected { script, reasons }) = rejected {
            let reasons: Vec<String> = reasons.iter().map(|reason| format!("- {reason}")).collect();
            messages.push(Message::text(Role::Assistant, script.to_string()));
            messages.push(Message::text(Role::User, prompt::REPAIR.replace("{reasons}", &reasons.join("\n"))));
        }
        Request {
            system: vec![system.join("\n\n")],
            messages,
            response_schema: Some(ResponseSchema { name: "test".into(), schema: self.schema() }),
            // The user is waiting for the result, so a silent provider is not asked again and again.
            gives_up_on_silence: true,
            conversation: Conversation::main(),
            ..Request::default()
        }
    }

    /// Returns sentences about what the format can express.
    fn rules(&self, category: &Category) -> Vec<String> {
        let mut rules = Vec::new();
        rules.push(match (self.format.has_turns, category.needs_turns) {
            (false, _) => "It has exactly one message.".to_owned(),
            (true, true) => format!("It has two to {MOST_TURNS} messages."),
            (true, false) => "Prefer one message.".to_owned(),
        });
        rules.push(match self.format.has_files {
            true => "The agent works in an empty folder; `files` are put there before it starts.".to_owned(),
            false => "`files` is empty: the agent has no folder.".to_owned(),
        });
        match (self.skill, category.name) {
            (Some(_), "trigger") => rules.push("The message does not name the skill.".to_owned()),
            (Some(_), "near-miss") => {
                rules.push("The agent must do the work without the skill; assert the work.".to_owned());
            }
            (Some(skill), _) => rules.push(format!("The skill is called `{skill}`.")),
            (None, _) => {}
        }
        rules
    }

    /// Returns the JSON Schema of a test.
    fn schema(&self) -> Value {
        let object = |properties: Value| {
            let required: Vec<String> =
                properties.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
            json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
        };
        let list = |items: Value| json!({ "type": "array", "items": items });
        let text = json!({ "type": "string" });
        let kinds: Vec<&str> = AssertionKind::ALL
            .into_iter()
            .filter(|kind| self.format.can_assert(*kind))
            .map(AssertionKind::name)
            .collect();
        let assertion = object(json!({
            "type": { "type": "string", "enum": kinds },
            "value": text,
            "tool": text,
            "arguments": list(object(json!({ "name": text, "pattern": text }))),
            "path": text,
        }));
        object(json!({
            "role": text,
            "tone": text,
            "turns": list(object(json!({ "says": text, "assertions": list(assertion) }))),
            "files": list(object(json!({ "path": text, "content": text }))),
        }))
    }

    /// Reads a test.
    ///
    /// # Errors
    /// Returns a description of the first problem.
    pub fn read(&self, value: &Value, category: &Category) -> Result<TestScript, String> {
        let script: TestScript = answer::read(value)?;
        self.check_turns(&script, category)?;
        self.check_files(&script)?;
        let assertions = || script.turns.iter().flat_map(|turn| &turn.assertions);
        assertions().try_for_each(|assertion| self.check_assertion(assertion))?;
        if !assertions().any(|assertion| !assertion.kind.is_judged()) {
            return Err("no assertion is decided without a judge".to_owned());
        }
        Ok(script)
    }

    /// Returns `true` if the tools come from a source that lists all of them. If an agent was only observed, it may
    /// have more.
    fn knows_all_tools(&self) -> bool {
        let is_listed = |evidence: &Evidence| matches!(evidence.kind, EvidenceKind::File | EvidenceKind::Document);
        self.profile.tools.iter().flat_map(|tool| &tool.evidence).any(is_listed)
    }

    fn check_turns(&self, script: &TestScript, category: &Category) -> Result<(), String> {
        let most = if self.format.has_turns { MOST_TURNS } else { 1 };
        let least = if category.needs_turns { 2 } else { 1 };
        if !(least..=most).contains(&script.turns.len()) {
            return Err(format!("it has {} messages instead of {least} to {most}", script.turns.len()));
        }
        for turn in &script.turns {
            if turn.says.trim().is_empty() {
                return Err("a message is empty".to_owned());
            }
            if turn.assertions.len() > MOST_ASSERTIONS {
                return Err(format!("a reply has more than {MOST_ASSERTIONS} assertions"));
            }
        }
        let texts = script.turns.iter().map(|turn| &turn.says).chain([&script.role, &script.tone]);
        match texts.into_iter().any(|text| text.chars().count() > LONGEST) {
            true => Err(format!("a text has more than {LONGEST} characters")),
            false => Ok(()),
        }
    }

    fn check_files(&self, script: &TestScript) -> Result<(), String> {
        if !self.format.has_files && !script.files.is_empty() {
            return Err("`files` must be empty".to_owned());
        }
        script.files.iter().try_for_each(|file| check_path(&file.path))
    }

    fn check_assertion(&self, assertion: &crate::candidate::ProposedAssertion) -> Result<(), String> {
        let needs = assertion.kind.needs();
        let name = needs.name;
        if !self.format.can_assert(assertion.kind) {
            return Err(format!("this format has no assertion `{name}`"));
        }
        for (field, value, is_needed) in [
            ("value", &assertion.value, needs.value),
            ("tool", &assertion.tool, needs.tool),
            ("path", &assertion.path, needs.path),
        ] {
            if is_needed && value.trim().is_empty() {
                return Err(format!("`{name}` has no `{field}`"));
            }
            if value.chars().count() > LONGEST {
                return Err(format!("the `{field}` of `{name}` has more than {LONGEST} characters"));
            }
        }
        if needs.path {
            check_path(&assertion.path)?;
        }
        let tools = &self.profile.tools;
        if needs.tool && self.knows_all_tools() && !tools.iter().any(|tool| tool.name == assertion.tool) {
            let near = model::nearest(&assertion.tool, tools.iter().map(|tool| tool.name.as_str()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("the agent has no tool `{}`{near}", assertion.tool));
        }
        Ok(())
    }
}

/// Checks that a path stays in the sandbox, and outside git's own files.
fn check_path(path: &str) -> Result<(), String> {
    let parts = || Path::new(path).components();
    let is_inside = !path.trim().is_empty()
        && parts().all(|part| matches!(part, Component::Normal(_)))
        && !parts().any(|part| part.as_os_str() == ".git");
    match is_inside {
        true => Ok(()),
        false => Err(format!("`{path}` is not a path inside the agent's folder")),
    }
}
