//! Claims that cannot be compiled to assertions, so a judge decides them.

use model::{Evidence, Need};

use super::ClaimContext;
use super::token::{Token, tokens};
use super::word::{Subject, Word};
use crate::judge::reading::{quote, reasoning, split};
use crate::judge::{self, Criterion, Form, Judged, Material, Question, Quoted, Votes, prompt};
use crate::verdict::Verdict;

/// Question for a judge.
#[derive(Debug)]
pub(super) struct JudgedClaim {
    text: String,
    setting: ClaimContext,
    quoted: Quoted,
}

impl JudgedClaim {
    pub fn new(text: &str, setting: &ClaimContext) -> Self {
        // A quote cannot show that something is absent.
        let says_no = |token: &Token| match token {
            Token::Word(Word::Not | Word::Single | Word::Subject(Subject::Nothing), _) => true,
            Token::Unknown(word) => word.eq_ignore_ascii_case("only"),
            _ => false,
        };
        let quoted = if tokens(text).iter().any(says_no) { Quoted::WhenViolated } else { Quoted::WhenMet };
        Self { text: text.to_owned(), setting: setting.clone(), quoted }
    }
}

impl Judged for JudgedClaim {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        let material = Material::from_evidence(evidence);
        // Even if the agent did not leave any material, a judge can say what it did not do.
        if material.is_empty() && self.quoted == Quoted::WhenMet {
            return Err(judge::nothing_to_judge(&self.text));
        }
        let mut task = prompt::CLAIM.to_owned();
        if let Some(expected) = &self.setting.expected {
            task.push_str(&format!("\n\nWhat a good outcome looks like:\n{expected}"));
        }
        if self.setting.is_turned {
            task.push_str("\n\n");
            task.push_str(prompt::NOT_TRIGGERED);
        }
        Ok(Question {
            task,
            criteria: vec![Criterion::new(0, self.text.as_str(), self.quoted)],
            form: Form::Marks,
            material: material.with_sandbox(evidence),
            has_sandbox: true,
        })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let tally = votes.tally(0);
        let reason = |text: &str| format!("{text}{}{}", tally.agreement(), reasoning(votes, 0));
        match tally.majority() {
            Some(true) => Verdict::met(reason("the claim holds")).evidence(quote(votes, 0)),
            Some(false) => {
                let shown = quote(votes, 0).unwrap_or_else(|| "the claim does not hold".to_owned());
                Verdict::unmet(reason("the claim does not hold"), self.text.clone(), shown)
            }
            None => Verdict::undecided(split(votes)),
        }
    }

    fn needs(&self) -> Vec<Need> {
        if self.setting.has_files { vec![Need::Files, Need::Repository] } else { Vec::new() }
    }
}
