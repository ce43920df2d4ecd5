//! `commit_created` and `commit_not_created`: the agent created a commit on the branch that is checked out, or did not
//! create a commit on any branch.

use model::{Commit, RepositoryChange};

use super::prelude::*;
use super::repository_matcher::RepositoryMatcher;
use crate::evidence::repository;
use crate::example::{commit, commit_on};
use crate::folded;
use crate::pattern::{Pattern, RegexBudget};

/// Number of commits that a finding shows.
const SHOWN: usize = 5;

pub(crate) const ASSERTION: Assertion = Assertion::written("commit_created", parse)
    .summary("The agent created a commit, and it is reachable from the checkout.")
    .fields(&[
        Field::optional(
            "message",
            "regular expression, also `/…/flags`",
            "Must match a part of the first line of the commit message.",
        )
        .or("any message"),
        TITLE,
    ])
    .pass(
        || json!({"id": "commits", "type": "commit_created", "message": "^feat(\\(.+\\))?: "}),
        || EvidenceBuilder::new().repository(|change| commit_on(change, "b2", "feat: add a basket")),
    )
    .fail(
        || json!({"id": "commits", "type": "commit_created"}),
        || {
            EvidenceBuilder::new()
                .repository(|change| change.new_commits = vec![commit("b2", "feat: add a basket", false)])
        },
    );

pub(crate) const NEGATION: Assertion = Assertion::written("commit_not_created", |_| Some(Arc::new(CommitNotCreated)))
    .aliases(&["no_commit_created"])
    .summary("The agent did not create a commit on any branch.")
    .fields(&[TITLE])
    .example(
        || json!({"id": "only-looks", "type": "commit_not_created"}),
        || EvidenceBuilder::new().repository(|_| {}),
        || EvidenceBuilder::new().repository(|change| commit_on(change, "b2", "feat: add a basket")),
    );

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
    /// True if it must be the only new commit.
    pub is_single: bool,
}

#[derive(Debug)]
pub(crate) struct CommitNotCreated;

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let message = match reading.fields.get("message") {
        Some(_) => Some(Message::Pattern(reading.literal("message")?)),
        None => None,
    };
    Some(Arc::new(CommitCreated { message, is_single: false }))
}

impl RepositoryMatcher for CommitCreated {
    fn judge_change(&self, change: &RepositoryChange, _: &Evidence) -> Judgement {
        let new = repository::new_commits(change);
        let on_head: Vec<&Commit> = new.iter().copied().filter(|commit| commit.on_head).collect();
        if on_head.is_empty() {
            return Ok(self.none_on_head(change, &new));
        }
        if self.is_single && new.len() > 1 {
            return Ok(self.unmet(format!("{} created", were(new.len())), &new));
        }
        let Some(message) = &self.message else {
            return Ok(Verdict::met(format!("{} created: {}", were(on_head.len()), repository::describe(on_head[0]))));
        };
        let regex_budget = RegexBudget::new();
        for commit in &on_head {
            match message.is_in(&commit.subject, &regex_budget) {
                Ok(true) => {
                    let reason = format!("the message contains {message}: {}", repository::describe(commit));
                    return Ok(message.placed(Verdict::met(reason)));
                }
                Ok(false) => {}
                Err(error) => return Ok(message.placed(Verdict::undecided(error))),
            }
        }
        let reason = format!("no message of {} contains {message}", format::count(on_head.len(), "new commit"));
        Ok(message.placed(self.unmet(reason, &new)))
    }
}

impl CommitCreated {
    fn none_on_head(&self, change: &RepositoryChange, new: &[&Commit]) -> Verdict {
        if new.is_empty() {
            let head = change.after.head.as_deref().map_or("no commit", repository::short);
            return Verdict::unmet("there is no new commit", self.wanted(), format!("{head} is checked out"));
        }
        self.unmet(format!("{} created, but not on HEAD", were(new.len())), new)
    }

    /// Returns the verdict for new commits none of which matches.
    fn unmet(&self, reason: String, new: &[&Commit]) -> Verdict {
        let mut lines = format::few(new.iter().map(|commit| repository::describe(commit)).collect(), SHOWN).into_iter();
        Verdict::unmet(reason, self.wanted(), lines.next().unwrap_or_default()).evidence(lines)
    }

    fn wanted(&self) -> String {
        match &self.message {
            Some(message) => format!("a new commit whose message contains {message}"),
            None if self.is_single => "exactly one new commit on HEAD".to_owned(),
            None => "a new commit on HEAD".to_owned(),
        }
    }
}

impl RepositoryMatcher for CommitNotCreated {
    fn judge_change(&self, change: &RepositoryChange, _: &Evidence) -> Judgement {
        let new = repository::new_commits(change);
        let Some((latest, others)) = new.split_first() else {
            return Ok(Verdict::met("no new commit on HEAD or a branch"));
        };
        let reason = if others.is_empty() { "there is a new commit" } else { "there are new commits" };
        let others = format::few(others.iter().map(|commit| repository::describe(commit)).collect(), SHOWN);
        Ok(Verdict::unmet(reason, "no new commit", repository::describe(latest)).evidence(others))
    }
}

fn were(number: usize) -> String {
    format!("{} {}", format::count(number, "commit"), if number == 1 { "was" } else { "were" })
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
            Self::Pattern(pattern) => write!(f, "a match for {pattern}"),
            Self::Text(text) => f.write_str(&format::quoted(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::{judged, underlined};
    use crate::example::{EvidenceBuilder, commit_on};

    #[test]
    fn a_reset_to_an_older_commit_is_not_a_new_commit() {
        let reset = EvidenceBuilder::new().repository(|change| change.after.head = Some("00".into())).evidence();
        let finding = judged(&json!({"id": "a", "type": "commit_created"}), &reset);
        assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, "there is no new commit"));
    }

    #[test]
    fn one_commit_with_the_message_is_enough() {
        let made = EvidenceBuilder::new()
            .repository(|change| {
                commit_on(change, "b2", "feat: basket");
                commit_on(change, "c3", "wip");
            })
            .evidence();
        let finding_of =
            |message: &str| judged(&json!({"id": "a", "type": "commit_created", "message": message}), &made);
        assert_eq!(finding_of("^feat:").reason, "the message contains a match for /^feat:/: b2 feat: basket");
        let finding = finding_of("^fix:");
        assert_eq!((finding.status, underlined(&finding).as_str()), (Status::Unmet, "\"^fix:\""));
        assert_eq!(
            (finding.actual.as_deref(), finding.evidence.as_slice()),
            (Some("c3 wip"), &["b2 feat: basket".to_owned()][..])
        );
    }
}
