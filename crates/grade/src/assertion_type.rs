//! Description of a type of assertion: its names, fields and examples, and how it is parsed.

use std::fmt::Debug;
use std::sync::Arc;

use model::Evidence;
use serde_json::Value;

use crate::example::{EvidenceBuilder, Example, nothing_written};
use crate::matcher::Matcher;
use crate::reading::Reading;
use crate::verdict::Verdict;

/// Field `text`, if it is the title of the assertion.
pub(crate) const TITLE: Field =
    Field::optional("text", "string", "Title in reports; other assertions call it `title`.").or("none");

/// Field `judges` of every judged assertion.
pub(crate) const JUDGES: Field = Field::optional(
    "judges",
    "whole number, 1 to 15",
    "Number of judges. The majority or the mean of their scores decides; without a result, the assertion is undecided.",
)
.or("`judges` of the run, else 1");

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
    /// Part of a trial that it is about, if only some agents report it.
    pub reported: Option<Reported>,
    pub(crate) form: Form,
}

/// Part of a trial that only some agents report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// Calls of tools.
    ToolCalls,
    /// Requests for permission.
    Permissions,
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
    pub(crate) const fn required(name: &'static str, holds: &'static str, doc: &'static str) -> Self {
        Self { name, holds, required: true, default: None, doc }
    }

    /// Creates an optional field.
    pub(crate) const fn optional(name: &'static str, holds: &'static str, doc: &'static str) -> Self {
        Self { name, holds, required: false, default: None, doc }
    }

    /// Sets the default, as shown to users.
    pub(crate) const fn or(self, default: &'static str) -> Self {
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
    pub(crate) const fn written(name: &'static str, parse: Parse) -> Self {
        Self::of(name, &[Parameter::Fields], Form::Written { parse })
    }

    /// Creates an assertion that the user writes into a case and that a model judges.
    pub(crate) const fn judged(name: &'static str, parse: Parse) -> Self {
        Self::of(name, &[Parameter::Fields], Form::Judged { parse, pass: nothing_written, fail: nothing_written })
    }

    /// Creates an assertion that applies to every trial.
    pub(crate) const fn implicit(name: &'static str, judge: Judge) -> Self {
        Self::of(name, &[], Form::Implicit { judge })
    }

    const fn of(name: &'static str, parameters: &'static [Parameter], form: Form) -> Self {
        let example = Example { assertion: nothing_written, story: EvidenceBuilder::new };
        let (pass, fail) = (example, example);
        Self { name, aliases: &[], parameters, summary: "", fields: &[], pass, fail, reported: None, form }
    }

    pub(crate) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub(crate) const fn fields(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    /// Sets the part of a trial that it is about.
    pub(crate) const fn reported(self, reported: Reported) -> Self {
        Self { reported: Some(reported), ..self }
    }

    pub(crate) const fn parameters(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    /// Sets an example that meets the assertion, and one that does not.
    pub(crate) const fn example(
        self,
        assertion: fn() -> Value,
        pass: fn() -> EvidenceBuilder,
        fail: fn() -> EvidenceBuilder,
    ) -> Self {
        self.pass(assertion, pass).fail(assertion, fail)
    }

    pub(crate) const fn pass(self, assertion: fn() -> Value, story: fn() -> EvidenceBuilder) -> Self {
        Self { pass: Example { assertion, story }, ..self }
    }

    pub(crate) const fn fail(self, assertion: fn() -> Value, story: fn() -> EvidenceBuilder) -> Self {
        Self { fail: Example { assertion, story }, ..self }
    }

    /// Sets the judge's answers to both examples.
    pub(crate) const fn answers(self, pass: CannedAnswer, fail: CannedAnswer) -> Self {
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
        self.name == "claim"
    }

    /// Returns `true` if it says that the skill or sub-agent under test is used, or is not used.
    pub fn is_about_skill(&self) -> bool {
        model::SKILL_USE.contains(&self.name)
    }

    /// Returns `true` if some of the agent's answers decide it without a model, such as a reply that is plainly a
    /// question.
    pub fn may_need_no_judge(&self) -> bool {
        self.name == "output_is_question"
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
