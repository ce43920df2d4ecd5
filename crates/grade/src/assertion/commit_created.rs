//! `commit_created`: the agent created a commit on the branch that is checked out.

use std::sync::Arc;

use model::{Commit, Evidence, Need};
use serde_json::json;

use super::{Assertion, Field, Form, Parameter, TITLE};
use crate::example::{Example, Story, commit, commit_on};
use crate::folded;
use crate::matcher::Matcher;
use crate::pattern::{Pattern, RegexBudget};
use crate::reading::Reading;
use crate::repository;
use crate::verdict::Verdict;
use crate::words;

/// Number of commits that a finding shows.
const SHOWN: usize = 5;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "commit_created",
    aliases: &[],
    parameters: &[Parameter::Fields],
    summary: "The agent created a commit, and it is reachable from the checkout.",
    fields: &[
        Field {
            name: "message",
            holds: "regular expression, also `/…/flags`",
            required: false,
            default: Some("any message"),
            doc: "Matches a part of the first line of the commit message.",
        },
        TITLE,
    ],
    pass: Example {
        assertion: || json!({"id": "commits", "type": "commit_created", "message": "^feat(\\(.+\\))?: "}),
        evidence: || Story::new().repository(|change| commit_on(change, "b2", "feat: add a basket")).evidence(),
    },
    fail: Example {
        assertion: || json!({"id": "commits", "type": "commit_created"}),
        evidence: || {
            Story::new()
                .repository(|change| change.new_commits = vec![commit("b2", "feat: add a basket", false)])
                .evidence()
        },
    },
    form: Form::Written { parse },
};

/// Requirement on the first line of a commit message.
#[derive(Debug)]
pub(crate) enum Message {
    /// Some part of the line matches.
    Pattern(Pattern),
    /// The line contains this text, ignoring case.
    Text(String),
}

#[derive(Debug)]
pub(crate) struct CommitCreated {
    pub message: Option<Message>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    reading.caption();
    let message = match reading.fields.get("message") {
        Some(_) => Some(Message::Pattern(reading.literal("message")?)),
        None => None,
    };
    Some(Arc::new(CommitCreated { message }))
}

impl Matcher for CommitCreated {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let change = match repository::change(evidence) {
            Ok(change) => change,
            Err(undecided) => return *undecided,
        };
        let new = repository::new_commits(change);
        let on_head: Vec<&Commit> = new.iter().copied().filter(|commit| commit.on_head).collect();
        let lines = || words::few(new.iter().map(|commit| repository::told(commit)).collect(), SHOWN);
        let wanted = || match &self.message {
            Some(message) => format!("a new commit whose message has {message}"),
            None => "a new commit on what is checked out".to_owned(),
        };
        if new.is_empty() {
            let head = change.after.head.as_deref().map_or_else(|| "no commit".to_owned(), repository::short_owned);
            return Verdict::unmet("there is no new commit", wanted(), format!("{head} is checked out"));
        }
        if on_head.is_empty() {
            let because = format!("{} made, but not on what is checked out", were(new.len()));
            return Verdict::unmet(because, wanted(), lines().remove(0)).evidence(lines().into_iter().skip(1));
        }
        let Some(message) = &self.message else {
            return Verdict::met(format!("{} made: {}", were(on_head.len()), repository::told(on_head[0])));
        };
        let regex_budget = RegexBudget::new();
        for commit in &on_head {
            match message.is_in(&commit.subject, &regex_budget) {
                Ok(true) => return message.placed(Verdict::met(format!("{} has {message}", repository::told(commit)))),
                Ok(false) => {}
                Err(error) => return message.placed(Verdict::undecided(error)),
            }
        }
        let because = format!("no message of {} has {message}", words::count(on_head.len(), "new commit"));
        message.placed(Verdict::unmet(because, wanted(), lines().remove(0)).evidence(lines().into_iter().skip(1)))
    }
}

fn were(number: usize) -> String {
    format!("{} {}", words::count(number, "commit"), if number == 1 { "was" } else { "were" })
}

impl Message {
    fn is_in(&self, subject: &str, regex_budget: &RegexBudget) -> Result<bool, String> {
        match self {
            Self::Pattern(pattern) => pattern.test(subject, regex_budget),
            Self::Text(text) => Ok(folded::find(subject, text).is_some()),
        }
    }

    fn placed(&self, verdict: Verdict) -> Verdict {
        match self {
            Self::Pattern(pattern) => verdict.place(&pattern.place),
            Self::Text(_) => verdict,
        }
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pattern(pattern) => write!(f, "a match of {pattern}"),
            Self::Text(text) => f.write_str(&words::quoted(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::{judged, underlined};
    use crate::example::{Story, commit_on};

    #[test]
    fn a_reset_to_an_older_commit_makes_nothing_new() {
        let reset = Story::new().repository(|change| change.after.head = Some("00".into())).evidence();
        let finding = judged(&json!({"id": "a", "type": "commit_created"}), &reset);
        assert_eq!((finding.status, finding.because.as_str()), (Status::Unmet, "there is no new commit"));
    }

    #[test]
    fn one_commit_with_the_message_is_enough() {
        let made = Story::new()
            .repository(|change| {
                commit_on(change, "b2", "feat: basket");
                commit_on(change, "c3", "wip");
            })
            .evidence();
        let of = |message: &str| judged(&json!({"id": "a", "type": "commit_created", "message": message}), &made);
        assert_eq!(of("^feat:").because, "b2 feat: basket has a match of /^feat:/");
        let finding = of("^fix:");
        assert_eq!((finding.status, underlined(&finding).as_str()), (Status::Unmet, "\"^fix:\""));
        assert_eq!(
            (finding.actual.as_deref(), finding.evidence.as_slice()),
            (Some("c3 wip"), &["b2 feat: basket".to_owned()][..])
        );
    }
}
