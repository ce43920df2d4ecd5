//! Types of assertions, one file each, and the table of all types in the order in which users see them.

mod agent_finished;
pub(crate) mod branch_created;
mod budget;
mod claim;
mod command;
pub(crate) mod command_ran;
pub(crate) mod commit_created;
mod contains;
mod egress_only;
pub(crate) mod expect;
mod factuality;
mod file_contains;
mod file_exists;
mod file_unchanged;
pub(crate) mod git_clean;
mod guardrail;
pub(crate) mod integrity_clean;
mod json_path;
mod json_schema;
mod latency;
mod llm_judge;
mod no_egress;
mod no_loop;
mod no_path_escape;
mod no_tool_called;
mod no_unanswered_questions;
mod output_contains;
mod output_is_question;
mod prelude;
pub(crate) mod pushed;
mod recovered;
mod request_check;
mod retries_at_most;
pub(crate) mod review_request_created;
mod rubric;
mod sentiment;
pub(crate) mod side_effect_contract;
mod skill_used;
mod tests_pass;
mod time_budget;
mod token_budget;
mod token_usage;
mod tool_call_sequence;
mod tool_called;
mod turn_budget;
mod turn_count_at_most;
pub(crate) mod valid_json;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use model::Evidence;
use serde_json::Value;

use crate::example::{EvidenceBuilder, Example, nothing_written};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::verdict::Verdict;

pub(crate) use budget::warned as over_budget;
pub use command::ran_nothing;

/// All types of assertions: first those that users write, then those that apply to every trial.
pub const ASSERTIONS: &[Assertion] = &[
    tool_called::ASSERTION,
    tool_call_sequence::ASSERTION,
    no_tool_called::ASSERTION,
    skill_used::SKILL_USED,
    skill_used::SKILL_NOT_USED,
    skill_used::SUB_AGENT_USED,
    skill_used::SUB_AGENT_NOT_USED,
    contains::ASSERTION,
    contains::NEGATION,
    output_contains::MATCHES,
    output_contains::ASSERTION,
    output_contains::NEGATION,
    json_schema::ASSERTION,
    expect::ASSERTION,
    latency::ASSERTION,
    token_usage::ASSERTION,
    turn_count_at_most::ASSERTION,
    no_path_escape::ASSERTION,
    no_egress::ASSERTION,
    egress_only::ASSERTION,
    file_exists::ASSERTION,
    file_exists::NEGATION,
    file_contains::ASSERTION,
    file_contains::NEGATION,
    file_unchanged::ASSERTION,
    valid_json::ASSERTION,
    json_path::ASSERTION,
    json_path::NEGATION,
    command::ASSERTION,
    tests_pass::ASSERTION,
    command_ran::ASSERTION,
    command_ran::NEGATION,
    branch_created::ASSERTION,
    branch_created::NEGATION,
    commit_created::ASSERTION,
    commit_created::NEGATION,
    pushed::ASSERTION,
    pushed::NEGATION,
    review_request_created::ASSERTION,
    review_request_created::NEGATION,
    git_clean::ASSERTION,
    side_effect_contract::ASSERTION,
    integrity_clean::ASSERTION,
    recovered::ASSERTION,
    retries_at_most::ASSERTION,
    no_loop::ASSERTION,
    claim::ASSERTION,
    sentiment::ASSERTION,
    llm_judge::ASSERTION,
    guardrail::ASSERTION,
    factuality::ASSERTION,
    rubric::ASSERTION,
    output_is_question::ASSERTION,
    no_unanswered_questions::ASSERTION,
    turn_budget::ASSERTION,
    token_budget::ASSERTION,
    budget::ASSERTION,
    time_budget::ASSERTION,
    agent_finished::ASSERTION,
    request_check::ASSERTION,
];

/// A type of assertion.
#[derive(Debug)]
pub struct Assertion {
    /// Value of the field `type`. In code, the function has the same name in camel case.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Positional arguments, in the order in which code passes them.
    pub parameters: &'static [Parameter],
    /// Its meaning in one sentence. `docs/reference/assertions.md` has the details.
    pub summary: &'static str,
    /// Fields other than `id`, `type` and `weight`.
    pub fields: &'static [Field],
    /// Example that meets the assertion.
    pub pass: Example,
    /// Example that does not meet the assertion.
    pub fail: Example,
    pub(crate) form: Form,
}

/// Positional argument: of `assert.contains(reply, "hello")`, or of the short form `contains: hello`, whose value is
/// the first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Field of that name, which is not a map. A map in this position holds the fields by name.
    Value(&'static str),
    /// Field of that name, which may be a map.
    Map(&'static str),
    /// Map of the fields. Any other value is the value of the only required field.
    Fields,
}

/// Field of an assertion.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Key of the field.
    pub name: &'static str,
    /// Kind of value, such as "string" or "whole number".
    pub holds: &'static str,
    /// True if the field is required.
    pub required: bool,
    /// Default, as shown to users.
    pub default: Option<&'static str>,
    /// Description in one or two sentences.
    pub doc: &'static str,
}

impl Field {
    /// Creates a required field.
    const fn required(name: &'static str, holds: &'static str, doc: &'static str) -> Self {
        Self { name, holds, required: true, default: None, doc }
    }

    /// Creates an optional field.
    const fn optional(name: &'static str, holds: &'static str, doc: &'static str) -> Self {
        Self { name, holds, required: false, default: None, doc }
    }

    /// Sets the default, as shown to users.
    const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
}

/// Kind of an assertion: written by the user, judged by a model, or implicit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// The user writes it into a case.
    Written { parse: Parse },
    /// The user writes it into a case, and a model judges it.
    Judged {
        parse: Parse,
        /// Judge's answer to the example that meets the assertion.
        pass: CannedAnswer,
        /// Judge's answer to the example that does not meet the assertion.
        fail: CannedAnswer,
    },
    /// It applies to every trial, and returns a finding only if it is relevant.
    Implicit { judge: Judge },
}

type Parse = fn(&mut Reading<'_>) -> Option<Arc<dyn Matcher>>;
type Judge = fn(&Evidence) -> Option<Verdict>;
type CannedAnswer = fn() -> Value;

impl Assertion {
    /// Creates an assertion that the user writes into a case. Its only parameter is the map of the fields.
    const fn written(name: &'static str, parse: Parse) -> Self {
        Self::of(name, &[Parameter::Fields], Form::Written { parse })
    }

    /// Creates an assertion that the user writes into a case and that a model judges.
    const fn judged(name: &'static str, parse: Parse) -> Self {
        Self::of(name, &[Parameter::Fields], Form::Judged { parse, pass: nothing_written, fail: nothing_written })
    }

    /// Creates an assertion that applies to every trial.
    const fn implicit(name: &'static str, judge: Judge) -> Self {
        Self::of(name, &[], Form::Implicit { judge })
    }

    const fn of(name: &'static str, parameters: &'static [Parameter], form: Form) -> Self {
        let example = Example { assertion: nothing_written, story: EvidenceBuilder::new };
        Self { name, aliases: &[], parameters, summary: "", fields: &[], pass: example, fail: example, form }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    const fn fields(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    const fn parameters(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    /// Sets an example that meets the assertion, and one that does not.
    const fn example(
        self,
        assertion: fn() -> Value,
        pass: fn() -> EvidenceBuilder,
        fail: fn() -> EvidenceBuilder,
    ) -> Self {
        self.pass(assertion, pass).fail(assertion, fail)
    }

    const fn pass(self, assertion: fn() -> Value, story: fn() -> EvidenceBuilder) -> Self {
        Self { pass: Example { assertion, story }, ..self }
    }

    const fn fail(self, assertion: fn() -> Value, story: fn() -> EvidenceBuilder) -> Self {
        Self { fail: Example { assertion, story }, ..self }
    }

    /// Sets the judge's answers to both examples.
    const fn answers(self, pass: CannedAnswer, fail: CannedAnswer) -> Self {
        let form = match self.form {
            Form::Judged { parse, .. } => Form::Judged { parse, pass, fail },
            form => form,
        };
        Self { form, ..self }
    }

    /// Returns `true` if it applies to every trial without being written in the case.
    pub fn is_implicit(&self) -> bool {
        matches!(self.form, Form::Implicit { .. })
    }

    /// Returns `true` if a model judges it.
    pub fn is_judged(&self) -> bool {
        matches!(self.form, Form::Judged { .. })
    }

    /// Returns `true` if its field `text` is its title.
    pub(crate) fn has_caption(&self) -> bool {
        self.fields.contains(&TITLE)
    }

    /// Returns `true` if it has the field `judges`.
    pub(crate) fn has_judges(&self) -> bool {
        self.fields.contains(&JUDGES)
    }

    /// Returns `true` if it is written in natural language.
    pub(crate) fn is_claim(&self) -> bool {
        self.name == claim::ASSERTION.name
    }

    /// Returns `true` if it says that the skill or sub-agent under test is used, or is not used.
    pub fn is_about_skill(&self) -> bool {
        model::SKILL_USE.contains(&self.name)
    }

    /// Returns `true` if some of the agent's answers decide it without a model, such as a reply that is plainly a
    /// question.
    pub fn may_need_no_judge(&self) -> bool {
        self.name == output_is_question::ASSERTION.name
    }

    /// Returns the judge's answer to one of the assertion's own examples, which must be the instance in the table.
    pub(crate) fn judge_says(&self, example: &Example) -> Option<Value> {
        match self.form {
            Form::Judged { pass, .. } if std::ptr::eq(example, &raw const self.pass) => Some(pass()),
            Form::Judged { fail, .. } => Some(fail()),
            Form::Written { .. } | Form::Implicit { .. } => None,
        }
    }

    /// Returns its name in code: `toolCalled` for `tool_called`.
    pub fn code_name(&self) -> String {
        camel_case(self.name)
    }
}

/// Converts `tool_called` to `toolCalled`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// Finds an assertion by its name in files or in code, or by an alias.
pub fn find(name: &str) -> Option<&'static Assertion> {
    let name = snake_case(name);
    ASSERTIONS.iter().find(|assertion| assertion.name == name || assertion.aliases.contains(&name.as_ref()))
}

/// Converts `toolCalled` to `tool_called`. Other names are returned unchanged.
pub(crate) fn snake_case(name: &str) -> Cow<'_, str> {
    if !name.contains(|c: char| c.is_ascii_uppercase()) || name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    Cow::Owned(snake)
}

/// Field `tool`, shared by several assertions.
const TOOL: Field = Field::required("tool", "string", "Exact name of the tool, such as `Bash`.");

/// Field `args_match`, shared by several assertions.
const ARGS_MATCH: Field = Field::optional("args_match", "map of regular expressions and values, or regular expression", "Argument name → regular expression. All must match the same call. A missing argument is the empty string. A number, boolean, list or map is an expectation as in `expect`. A single regular expression instead of the map is matched against the JSON of all arguments.").or("any arguments");

/// Field `text`, if it is the title of the assertion.
const TITLE: Field =
    Field::optional("text", "string", "Title in reports; other assertions call it `title`.").or("none");

/// Field `path`, shared by several assertions.
const PATH: Field = Field::required("path", "string", "Path of the file in the agent's working directory.");

/// Field `judges` of every judged assertion.
const JUDGES: Field = Field::optional(
    "judges",
    "whole number, 1 to 15",
    "Number of judges. The majority or the mean of their scores decides; without a result, the assertion is undecided.",
)
.or("`judges` of the run, else 1");

/// Field `capture`, shared by several assertions.
const CAPTURE: Field =
    Field::optional("capture", "list of strings", "Arguments of the matching call to show in reports.").or("none");

/// Field `capture_max_chars`, shared by several assertions.
const CAPTURE_MAX_CHARS: Field = Field::optional(
    "capture_max_chars",
    "whole number, at least 1",
    "Maximum length of a captured value on the terminal, in UTF-16 code units.",
)
.or("2000");

#[cfg(test)]
mod tests {
    use model::{Budget, Ending, Evidence, Finding, Status, Step};

    use super::*;
    use crate::check::grade;
    use crate::example::EvidenceBuilder;

    fn implicit(name: &str, evidence: &Evidence) -> Option<Finding> {
        grade(&[], evidence).into_iter().find(|finding| finding.kind == name)
    }

    #[test]
    fn budget_findings_belong_to_implicit_assertions() {
        for name in model::BUDGETS {
            assert!(find(name).is_some_and(Assertion::is_implicit), "{name}");
        }
    }

    #[test]
    fn names_and_fields_are_unique_and_described() {
        for (at, assertion) in ASSERTIONS.iter().enumerate() {
            assert!(ASSERTIONS[..at].iter().all(|other| other.name != assertion.name), "{}", assertion.name);
            assert!(assertion.summary.ends_with('.') && !assertion.summary.contains('\n'), "{}", assertion.name);
            assert!(assertion.fields.iter().all(|field| field.doc.ends_with('.')));
            assert!(!assertion.is_implicit() || assertion.fields.is_empty());
            let names = [&[assertion.name], assertion.aliases].concat();
            assert!(names.iter().all(|name| find(name).is_some_and(|found| found.name == assertion.name)), "{names:?}");
            assert_eq!(find(&assertion.code_name()).map(|found| found.name), Some(assertion.name));
            for parameter in assertion.parameters {
                let (Parameter::Value(name) | Parameter::Map(name)) = parameter else { continue };
                assert!(assertion.fields.iter().any(|field| field.name == *name), "{} {name}", assertion.name);
            }
        }
    }

    #[test]
    fn a_turn_budget_counts_only_if_it_was_set() {
        let stopped = || EvidenceBuilder::new().ending(Ending::OutOfBudget { budget: Budget::Turns, limit: 40.0 });
        assert_eq!(implicit("turn_budget", &stopped().evidence()), None);
        let set = stopped().limits(|limits| limits.max_turns_set = true).evidence();
        assert_eq!(implicit("turn_budget", &set).unwrap().status, Status::Unmet);
        let other = EvidenceBuilder::new().ending(Ending::OutOfBudget { budget: Budget::Cost, limit: 1.0 });
        let other = other.limits(|limits| limits.max_turns_set = true).evidence();
        assert_eq!(implicit("turn_budget", &other).unwrap().status, Status::Met);
    }

    #[test]
    fn a_token_budget_without_a_count_is_undecided_unless_it_stopped_the_agent() {
        let limited = || EvidenceBuilder::new().limits(|limits| limits.token_budget = Some(10.0));
        assert_eq!(implicit("token_budget", &limited().evidence()).unwrap().status, Status::Undecided);
        assert_eq!(implicit("token_budget", &limited().used(4, 3, 3).evidence()).unwrap().status, Status::Met);
        let over = implicit("token_budget", &limited().used(4, 3, 1000).evidence()).unwrap();
        assert_eq!((over.status, over.reason.as_str()), (Status::Unmet, "1,007 tokens exceed the budget of 10"));
        assert_eq!(over.evidence, ["4 input, 3 output, 0 written to a cache, 1,000 read from a cache"]);
        let stopped = limited().ending(Ending::OutOfBudget { budget: Budget::Tokens, limit: 10.0 }).evidence();
        assert_eq!(implicit("token_budget", &stopped).unwrap().status, Status::Unmet);
        assert_eq!(implicit("token_budget", &EvidenceBuilder::new().used(1, 1, 1).evidence()), None);
    }

    #[test]
    fn a_timeout_names_its_setting_and_the_call_that_hangs() {
        let ending = Ending::TimedOut { setting: "timeout".into(), after_ms: 1500, hint: None };
        let mut evidence =
            EvidenceBuilder::new().call("Bash", serde_json::json!({"command": "sleep 9"})).ending(ending).evidence();
        evidence.trace.calls[0].result = None;
        let finding = implicit("time_budget", &evidence).unwrap();
        assert_eq!(finding.reason, "timed out after 1.5 s (timeout)");
        assert_eq!(finding.actual.as_deref(), Some("still waiting for call 1, Bash(command=\"sleep 9\")"));
        assert_eq!(implicit("agent_finished", &evidence), None);
    }

    #[test]
    fn a_sub_agents_turns_do_not_count() {
        let text = |message: &str, parent: Option<&str>| Step::Text {
            message: message.into(),
            text: "a".into(),
            parent: parent.map(str::to_owned),
        };
        let mut evidence = EvidenceBuilder::new().evidence();
        for step in [text("1", None), text("2", Some("c")), text("3", None)] {
            evidence.trace.push(&step);
        }
        let at_most = |max: usize| {
            let assertion = serde_json::json!({"id": "a", "type": "turn_count_at_most", "max": max});
            crate::check::tests::judged(&assertion, &evidence)
        };
        assert_eq!(at_most(2).status, Status::Met);
        assert_eq!(at_most(1).reason, "2 turns, 1 more than allowed");
        assert_eq!(at_most(1).at.unwrap().turn, Some(2));
    }

    #[test]
    fn every_unanswered_question_is_reported_and_located() {
        let mut evidence =
            EvidenceBuilder::new().question("A?", Some("x")).question("B?", None).question("C?", None).evidence();
        evidence.trace.questions[1].options = vec!["yes".into(), "no".into()];
        let finding = implicit("no_unanswered_questions", &evidence).unwrap();
        assert_eq!(finding.reason, "2 questions without a prepared answer");
        assert_eq!(finding.actual.as_deref(), Some("\"B?\" (choices: \"yes\", \"no\")"));
        assert_eq!(finding.evidence, ["\"C?\""]);
    }
}
