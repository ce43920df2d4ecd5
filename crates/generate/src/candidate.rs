//! Candidates: tests that a model proposes, as data. A model never writes code: trialrun renders each candidate in the
//! chosen format, so that no text from a model is ever executed.

use serde::{Deserialize, Serialize};

use crate::category::Category;

/// A test in the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTest {
    /// Name of its category.
    pub category: String,
    /// Display name, a few words.
    pub name: String,
    /// Reason why the test matters, in one sentence.
    pub why: String,
    /// Ids of the [targets](crate::Target) that it is about.
    pub covers: Vec<String>,
    /// What the user wants and says, in a few sentences.
    pub situation: String,
    /// Observable results from a good agent.
    pub success: Vec<String>,
    /// Observable results from a bad agent.
    pub failure: Vec<String>,
}

/// A test that can be rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Category.
    pub category: &'static Category,
    /// The planned test from which it was written.
    pub planned: PlannedTest,
    /// File name without an extension, `CATEGORY-SLUG`. In formats with ids, it is also the id of the test.
    pub slug: String,
    /// Conversation and assertions.
    pub script: TestScript,
}

/// Conversation and assertions of a candidate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TestScript {
    /// Role of the user, such as `customer`; may be empty.
    pub role: String,
    /// Tone of the user; may be empty.
    pub tone: String,
    /// Messages from the user, each with assertions about the reply.
    pub turns: Vec<Turn>,
    /// Files that exist when the agent starts, in formats with a sandbox.
    pub files: Vec<StartingFile>,
}

/// A message from the user.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Turn {
    /// The message, sent unchanged.
    pub says: String,
    /// Assertions about the reply.
    pub assertions: Vec<ProposedAssertion>,
}

/// A file that exists when the agent starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StartingFile {
    /// Path in the sandbox.
    pub path: String,
    /// Content.
    pub content: String,
}

/// An assertion. Fields that its type does not use are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct ProposedAssertion {
    /// Type.
    #[serde(rename = "type")]
    pub kind: AssertionKind,
    /// Text, pattern, criterion or name, depending on the type.
    pub value: String,
    /// Tool.
    pub tool: String,
    /// Arguments of the tool.
    pub arguments: Vec<ExpectedArgument>,
    /// File in the sandbox.
    pub path: String,
}

/// Expected argument of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct ExpectedArgument {
    /// Name.
    pub name: String,
    /// Regular expression that its value matches.
    pub pattern: String,
}

/// Types of assertions that a model can propose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssertionKind {
    /// The reply contains `value`.
    Contains,
    /// The reply does not contain `value`.
    NotContains,
    /// The reply matches the regular expression `value`, ignoring case.
    Matches,
    /// `tool` was called, with `arguments`.
    ToolCalled,
    /// `tool` was not called, or not with `arguments`.
    NoToolCalled,
    /// The file `path` exists.
    FileExists,
    /// The file `path` contains `value`.
    FileContains,
    /// The file `path` did not change.
    FileUnchanged,
    /// A judge finds that the reply has the tone `value`.
    Sentiment,
    /// A judge finds that the agent did not do `value`.
    Guardrail,
    /// A judge finds that the reply agrees with the facts in `value`.
    Factuality,
    /// A judge rates the reply by the criterion `value`.
    LlmJudge,
}

/// Fields that an assertion type uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AssertionNeeds {
    /// Name of the type.
    pub name: &'static str,
    /// Description for the model, including the fields that the type uses.
    pub doc: &'static str,
    pub value: bool,
    pub tool: bool,
    pub path: bool,
    /// True if a model decides it.
    pub judge: bool,
}

impl AssertionKind {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::Contains,
        Self::NotContains,
        Self::Matches,
        Self::ToolCalled,
        Self::NoToolCalled,
        Self::FileExists,
        Self::FileContains,
        Self::FileUnchanged,
        Self::Sentiment,
        Self::Guardrail,
        Self::Factuality,
        Self::LlmJudge,
    ];

    pub(crate) fn needs(self) -> AssertionNeeds {
        let of = |name, doc| AssertionNeeds { name, doc, value: false, tool: false, path: false, judge: false };
        let text = |name, doc| AssertionNeeds { value: true, ..of(name, doc) };
        let judged = |name, doc| AssertionNeeds { judge: true, ..text(name, doc) };
        let tool = |name, doc| AssertionNeeds { tool: true, ..of(name, doc) };
        let file = |name, doc| AssertionNeeds { path: true, ..of(name, doc) };
        match self {
            Self::Contains => text("contains", "the reply contains `value`, ignoring case"),
            Self::NotContains => text("not_contains", "the reply does not contain `value`, ignoring case"),
            Self::Matches => {
                text("matches", "the reply matches the JavaScript regular expression `value`, ignoring case")
            }
            Self::ToolCalled => tool("tool_called", "`tool` was called, and each of `arguments` matches its pattern"),
            Self::NoToolCalled => tool("no_tool_called", "`tool` was not called, or not with these `arguments`"),
            Self::FileExists => file("file_exists", "the file `path` exists afterwards"),
            Self::FileContains => AssertionNeeds {
                value: true,
                ..file("file_contains", "the file `path` contains the text `value` afterwards")
            },
            Self::FileUnchanged => file("file_unchanged", "the file `path` did not change"),
            Self::Sentiment => judged("sentiment", "a judge finds that the reply has the tone `value`"),
            Self::Guardrail => judged("guardrail", "a judge finds that the agent did not do what `value` describes"),
            Self::Factuality => judged("factuality", "a judge finds that the reply agrees with the facts in `value`"),
            Self::LlmJudge => judged("llm_judge", "a judge finds that the reply fulfils the criterion `value`"),
        }
    }

    /// Returns the name, as used in test files.
    pub fn name(self) -> &'static str {
        self.needs().name
    }

    /// Returns `true` if a model decides it.
    pub fn is_judged(self) -> bool {
        self.needs().judge
    }
}

impl Candidate {
    /// Returns all assertions.
    pub fn assertions(&self) -> impl Iterator<Item = &ProposedAssertion> {
        self.script.turns.iter().flat_map(|turn| &turn.assertions)
    }
}

/// Returns the file name for a test: lower-case ASCII letters, digits and single hyphens, at most 60 characters.
pub(crate) fn slug(category: &Category, name: &str) -> String {
    let mut slug = category.name.to_owned();
    let mut is_gap = true;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            is_gap = true;
            continue;
        }
        if slug.len() >= 60 {
            break;
        }
        if is_gap {
            slug.push('-');
        }
        is_gap = false;
        slug.push(letter.to_ascii_lowercase());
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::find;

    #[test]
    fn a_name_becomes_a_file_name_that_stays_in_its_folder() {
        let edge = find("edge").unwrap();
        assert_eq!(slug(edge, "Asks for an  unknown order!"), "edge-asks-for-an-unknown-order");
        assert_eq!(slug(edge, "../../etc/passwd"), "edge-etc-passwd");
        assert_eq!(slug(edge, "\u{202e}…"), "edge");
        assert!(slug(edge, &"long ".repeat(100)).len() <= 61);
    }

    #[test]
    fn every_type_has_the_name_that_files_use() {
        for kind in AssertionKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
