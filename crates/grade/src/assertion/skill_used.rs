//! `skill_used`, `sub_agent_used` and their negations: the agent used a skill or a sub-agent, or did not.

use model::{Definition, Trace};

use super::prelude::*;
use crate::call_pattern::{unknown_calls, unreported_calls};
use crate::skill_use::{
    delegates, failed_delegation, failed_use, first_delegation, first_use, made_use_of, unreadable_use, used,
};

pub(crate) const SKILL_USED: Assertion =
    Assertion::written("skill_used", |reading| parse(reading, Definition::Skill, true))
        .reported(Reported::ToolCalls)
        .summary("The agent used a skill.")
        .fields(&[Field::required("skill", "string", "Exact name of the skill, such as `release-notes`.")])
        .parameters(&[Parameter::Value("skill")])
        .example(
            || json!({"id": "uses-the-skill", "type": "skill_used", "skill": "release-notes"}),
            || EvidenceBuilder::new().call("Skill", json!({"skill": "release-notes"})).answer("Written."),
            || EvidenceBuilder::new().call("Bash", json!({"command": "git log"})).answer("Written."),
        );

pub(crate) const SKILL_NOT_USED: Assertion =
    Assertion::written("skill_not_used", |reading| parse(reading, Definition::Skill, false))
        .aliases(&["no_skill_used"])
        .reported(Reported::ToolCalls)
        .summary("The agent did not use a skill.")
        .fields(&[Field::required("skill", "string", "Exact name of the skill, such as `release-notes`.")])
        .parameters(&[Parameter::Value("skill")])
        .example(
            || json!({"id": "leaves-it-alone", "type": "skill_not_used", "skill": "release-notes"}),
            || EvidenceBuilder::new().call("Bash", json!({"command": "git log"})).answer("Here."),
            || EvidenceBuilder::new().call("Skill", json!({"skill": "release-notes"})).answer("Written."),
        );

pub(crate) const SUB_AGENT_USED: Assertion =
    Assertion::written("sub_agent_used", |reading| parse(reading, Definition::SubAgent, true))
        .reported(Reported::ToolCalls)
        .summary("The agent delegated a task to a sub-agent.")
        .fields(&[Field::required("sub_agent", "string", "Exact name of the sub-agent, such as `reviewer`.")])
        .parameters(&[Parameter::Value("sub_agent")])
        .example(
            || json!({"id": "asks-the-reviewer", "type": "sub_agent_used", "sub_agent": "reviewer"}),
            || EvidenceBuilder::new().call("Agent", json!({"subagent_type": "reviewer", "prompt": "Review."})),
            || EvidenceBuilder::new().call("Bash", json!({"command": "git diff"})).answer("Reviewed."),
        );

pub(crate) const SUB_AGENT_NOT_USED: Assertion =
    Assertion::written("sub_agent_not_used", |reading| parse(reading, Definition::SubAgent, false))
        .reported(Reported::ToolCalls)
        .summary("The agent did not delegate a task to a sub-agent.")
        .fields(&[Field::required("sub_agent", "string", "Exact name of the sub-agent, such as `reviewer`.")])
        .parameters(&[Parameter::Value("sub_agent")])
        .example(
            || json!({"id": "works-alone", "type": "sub_agent_not_used", "sub_agent": "reviewer"}),
            || EvidenceBuilder::new().call("Bash", json!({"command": "git diff"})).answer("Here."),
            || EvidenceBuilder::new().call("Agent", json!({"subagent_type": "reviewer", "prompt": "Review."})),
        );

/// Returns `true` if the agent used the skill or the sub-agent `name`; `None` if that is not known, because its replies
/// do not report all calls, or a call does not show what it used.
pub fn is_used(trace: &Trace, definition: Definition, name: &str) -> Option<bool> {
    let is_used = made_use_of(trace, definition, name);
    (is_used || unknown_use(trace, definition).is_none()).then_some(is_used)
}

/// Returns the reason why a skill or a sub-agent may have been used although no call shows it.
fn unknown_use(trace: &Trace, definition: Definition) -> Option<String> {
    unknown_calls(trace).or_else(|| unreadable(trace, definition))
}

/// Returns the reason why it is not known what a call used, if there is such a call.
fn unreadable(trace: &Trace, definition: Definition) -> Option<String> {
    unreadable_use(trace, definition).map(|call| format!("{} does not show what it used", call.summary()))
}

#[derive(Debug)]
struct Used {
    definition: Definition,
    name: String,
    is_wanted: bool,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>, definition: Definition, is_wanted: bool) -> Option<Arc<dyn Matcher>> {
    let (name, place) = reading.required_name(match definition {
        Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => "skill",
        Definition::SubAgent => "sub_agent",
    })?;
    let plain = name.trim_start_matches(['/', '@', '$']);
    let plain = plain.strip_suffix("/SKILL.md").or(plain.strip_suffix(".md")).unwrap_or(plain);
    let plain = match definition {
        // Names of sub-agents may have slashes.
        Definition::SubAgent => plain,
        _ => plain.rsplit('/').next().unwrap_or(plain),
    };
    if plain != name && !plain.is_empty() {
        let problem = model::Diagnostic::error(format!("`{name}` is not a name, as calls have it"));
        reading.problems.push(problem.at(place.excerpt()).suggest(Some(plain)));
        return None;
    }
    if name.contains(['*', ',', '|']) {
        let message = format!("nothing is called `{name}`, because names are compared exactly");
        let problem = model::Diagnostic::warning(message).at(place.excerpt());
        reading.problems.push(problem.help("write one name, in one assertion for each"));
    }
    Some(Arc::new(Used { definition, name, is_wanted, place }))
}

impl Matcher for Used {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let Self { name, is_wanted, place, .. } = self;
        let verdict = match (self.first(trace), is_wanted) {
            (Some(call), true) => {
                let summary = trace.calls[call].call.summary();
                Verdict::met(format!("call {}: {summary}", call + 1)).at_call(trace, call)
            }
            (Some(call), false) => {
                let reason = format!("`{name}` was used, call {}", call + 1);
                let expected = format!("no use of the {} `{name}`", self.kind());
                Verdict::unmet(reason, expected, trace.calls[call].call.summary()).at_call(trace, call)
            }
            (None, false) => match unknown_use(trace, self.definition) {
                Some(reason) => Verdict::undecided(reason),
                None => Verdict::met(match trace.calls.len() {
                    0 => format!("`{name}` was not used: the agent called no tool"),
                    count => format!("`{name}` was not used in {}", format::count(count, "call")),
                }),
            },
            (None, true) => {
                match trace.missing_calls().map(str::to_owned).or_else(|| unreadable(trace, self.definition)) {
                    Some(reason) => Verdict::undecided(reason),
                    None => self.missing(trace),
                }
            }
        };
        Ok(verdict.place(place))
    }
}

impl Used {
    /// Returns the verdict that it was not used, with what was used instead, and a call that failed.
    fn missing(&self, trace: &Trace) -> Verdict {
        let (name, kind) = (&self.name, self.kind());
        let others = self.others(trace);
        let actual = match others.as_slice() {
            [] => unreported_calls(trace).map_or_else(|| format!("the agent used no {kind}"), str::to_owned),
            others => format!("it used {}", format::names(others)),
        };
        let failed = self.failed(trace);
        let failure = failed.map(|call| format!("call {} failed: {}", call + 1, trace.calls[call].call.summary()));
        Verdict::unmet(format!("`{name}` was not used"), format!("use of the {kind} `{name}`"), actual)
            .evidence(failure)
            .at_call(trace, failed)
    }

    fn kind(&self) -> &'static str {
        match self.definition {
            Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => "skill",
            Definition::SubAgent => "sub-agent",
        }
    }

    fn first(&self, trace: &Trace) -> Option<usize> {
        match self.definition {
            Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => first_use(trace, &self.name),
            Definition::SubAgent => first_delegation(trace, &self.name),
        }
    }

    fn failed(&self, trace: &Trace) -> Option<usize> {
        match self.definition {
            Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => failed_use(trace, &self.name),
            Definition::SubAgent => failed_delegation(trace, &self.name),
        }
    }

    fn others(&self, trace: &Trace) -> Vec<String> {
        match self.definition {
            Definition::Skill | Definition::Plugin | Definition::SkillsOfPlugin => used(trace),
            Definition::SubAgent => delegates(trace).into_iter().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Certainty, Definition, Status};
    use serde_json::json;

    use super::is_used;
    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn invoking_a_skill_and_reading_its_file_count_as_uses() {
        let finding_of = |story: EvidenceBuilder| {
            judged(&json!({"id": "a", "type": "skill_used", "skill": "greet"}), &story.evidence())
        };
        let cat = [("skills/greet/SKILL.md", "/box/repo/.claude/skills/greet/SKILL.md", Certainty::Guessed)];
        for story in [
            EvidenceBuilder::new().call("Skill", json!({"skill": "tools:greet", "args": "x"})),
            EvidenceBuilder::new().call("SlashCommand", json!({"command": "/greet Ada"})),
            EvidenceBuilder::new().call("Read", json!({"file_path": "/box/repo/.claude/skills/greet/SKILL.md"})),
            EvidenceBuilder::new().touching("Read", json!({}), &cat),
        ] {
            assert_eq!(finding_of(story).status, Status::Met);
        }
        let other = finding_of(EvidenceBuilder::new().call("Skill", json!({"skill": "greeting"})));
        assert_eq!(other.actual.as_deref(), Some("it used `greeting`"));
        assert_eq!(
            finding_of(EvidenceBuilder::new().call("Write", json!({"file_path": "greet/SKILL.md"}))).status,
            Status::Unmet
        );
    }

    #[test]
    fn a_use_is_unknown_if_calls_are_not_reported_or_cannot_be_read() {
        let uses = |story: EvidenceBuilder, definition: Definition, kind: &str, name: &str| {
            let evidence = story.answer("Done.").evidence();
            let status =
                |kind: &str, field: &str| judged(&json!({"id": "a", "type": kind, field: name}), &evidence).status;
            let field = if kind == "skill" { "skill" } else { "sub_agent" };
            let statuses = [status(&format!("{kind}_used"), field), status(&format!("{kind}_not_used"), field)];
            (is_used(&evidence.trace, definition, name), statuses)
        };
        let skill = |story: EvidenceBuilder| uses(story, Definition::Skill, "skill", "greet");
        let new = || EvidenceBuilder::new().asks("Go");
        let unknown = (None, [Status::Undecided; 2]);
        assert_eq!(skill(new()), (Some(false), [Status::Unmet, Status::Met]));
        assert_eq!(skill(new().calls_unreported()), (None, [Status::Unmet, Status::Undecided]));
        for (tool, input) in [
            ("Skill", json!({})),
            ("Read", json!(null)),
            ("Bash", json!(null)),
            ("Skill", json!("{\"skill\": \"gr")),
            ("Read", json!("{\"file_path\": \"/box/repo/.claude/ski")),
            ("Bash", json!("{\"command\": \"cat .cl")),
        ] {
            assert_eq!(skill(new().call(tool, input.clone())), unknown, "{tool}: {input}");
            let known = new().call(tool, input).call("Skill", json!({"skill": "greet"}));
            assert_eq!(skill(known), (Some(true), [Status::Met, Status::Unmet]), "another call shows the use");
        }
        let agent =
            |input: serde_json::Value| uses(new().call("Agent", input), Definition::SubAgent, "sub_agent", "reviewer");
        assert_eq!(agent(json!("{\"subagent_ty")), unknown);
        assert_eq!(agent(json!(null)), unknown);
        assert_eq!(
            agent(json!({"message": "go"})),
            (Some(false), [Status::Unmet, Status::Met]),
            "no name is the default"
        );
    }

    #[test]
    fn a_failed_sub_agent_call_is_not_a_use_and_is_reported() {
        let mut evidence = EvidenceBuilder::new().call("Skill", json!({"skill": "greet"})).evidence();
        evidence.trace.calls[0].result.as_mut().unwrap().is_error = true;
        let used = judged(&json!({"id": "a", "type": "skill_used", "skill": "greet"}), &evidence);
        assert_eq!(used.evidence, ["call 1 failed: Skill(skill=\"greet\")"]);
        let unused = judged(&json!({"id": "a", "type": "skill_not_used", "skill": "greet"}), &evidence);
        assert_eq!(unused.status, Status::Met);
    }

    #[test]
    fn a_delegated_task_counts_as_a_use_of_the_sub_agent() {
        let statuses = |story: EvidenceBuilder| {
            let evidence = story.evidence();
            let status =
                |kind: &str| judged(&json!({"id": "a", "type": kind, "sub_agent": "reviewer"}), &evidence).status;
            (status("sub_agent_used"), status("sub_agent_not_used"))
        };
        let call =
            |tool: &str, name: &str| EvidenceBuilder::new().call(tool, json!({"subagent_type": name, "prompt": "p"}));
        for story in [call("Task", "reviewer"), call("Agent", "tools:reviewer")] {
            assert_eq!(statuses(story), (Status::Met, Status::Unmet));
        }
        let skill = EvidenceBuilder::new().call("Skill", json!({"skill": "reviewer"}));
        for story in [call("Agent", "general-purpose"), call("Read", "reviewer"), skill] {
            assert_eq!(statuses(story), (Status::Unmet, Status::Met));
        }
    }

    #[test]
    fn a_failed_skill_call_is_not_a_use_and_is_reported() {
        let mut evidence = EvidenceBuilder::new().call("Agent", json!({"subagent_type": "reviewer"})).evidence();
        evidence.trace.calls[0].result.as_mut().unwrap().is_error = true;
        let used = judged(&json!({"id": "a", "type": "sub_agent_used", "sub_agent": "reviewer"}), &evidence);
        assert_eq!(used.evidence, ["call 1 failed: Agent(subagent_type=\"reviewer\")"]);
    }
}
