//! `output_contains` and `matches`: the last answer matches a regular expression. `matches` also reads it as written
//! in code, with slashes and flags.

use model::Position;
use script::Regex;

use super::matched_text::{self, COUNT, FILE, IN};
use super::prelude::*;
use crate::pattern::{Pattern, RegexBudget};

pub(crate) const ASSERTION: Assertion = Assertion::written("output_contains", |reading| {
    let pattern = reading.pattern("pattern")?;
    pattern.warn_if_every_answer_matches(reading.problems);
    Some(matcher(pattern))
})
.summary("The agent's last answer matches a regular expression.")
.fields(&[Field::required("pattern", "regular expression", "Must match a part of the answer.")])
.parameters(&[Parameter::Value("pattern")])
.pass(
    || json!({"id": "says-it-is-done", "type": "output_contains", "pattern": "(?i)\\bdone\\b"}),
    || EvidenceBuilder::new().answer("All done: two files changed."),
)
.fail(
    || json!({"id": "names-the-type", "type": "output_contains", "pattern": "\\bfeat\\b"}),
    || EvidenceBuilder::new().answer("Committed as “Feat: reset the password”."),
);

pub(crate) const NEGATION: Assertion = Assertion::written("no_output_contains", |reading| {
    let pattern = reading.pattern("pattern")?;
    pattern.warn_if_every_answer_is_refused(reading.problems);
    Some(Arc::new(NoOutputContains { pattern }))
})
.summary("The agent's last answer does not match a regular expression.")
.fields(&[Field::required("pattern", "regular expression", "Must not match any part of the answer.")])
.parameters(&[Parameter::Value("pattern")])
.example(
    || json!({"id": "promises-nothing", "type": "no_output_contains", "pattern": "(?i)\\bguarantee"}),
    || EvidenceBuilder::new().answer("It should arrive on Monday."),
    || EvidenceBuilder::new().answer("Guaranteed to arrive on Monday."),
);

pub(crate) const MATCHES: Assertion = Assertion::written("matches", |reading| {
    match [IN.name, FILE.name, COUNT.name].iter().any(|key| reading.fields.get(key).is_some()) {
        true => matched_text::parse(reading),
        false => {
            let pattern = reading.literal("pattern")?;
            pattern.warn_if_every_answer_matches(reading.problems);
            Some(matcher(pattern))
        }
    }
})
.summary("The answer, or another text of the trial, matches a regular expression.")
.fields(&[
    Field::required("pattern", "regular expression, also `/…/flags`", "Must match a part of the text."),
    IN,
    FILE,
    COUNT,
])
.parameters(&[Parameter::Value("pattern")])
.example(
    || json!({"id": "names-the-order", "type": "matches", "pattern": "/order \\d+/i"}),
    || EvidenceBuilder::new().answer("I found Order 17."),
    || EvidenceBuilder::new().answer("I found your order."),
);

pub(crate) const MISMATCH: Assertion = Assertion::written("not_matches", |reading| {
    let pattern = reading.literal("pattern")?;
    pattern.warn_if_every_answer_is_refused(reading.problems);
    Some(Arc::new(NoOutputContains { pattern }))
})
.summary("The agent's last answer does not match a regular expression.")
.fields(&[Field::required("pattern", "regular expression, also `/…/flags`", "Must not match any part of the answer.")])
.parameters(&[Parameter::Value("pattern")])
.example(
    || json!({"id": "keeps-it", "type": "not_matches", "pattern": "/password is \\S+/i"}),
    || EvidenceBuilder::new().answer("I cannot tell you a password."),
    || EvidenceBuilder::new().answer("The Password is swordfish."),
);

#[derive(Debug)]
struct NoOutputContains {
    pattern: Pattern,
}

impl Matcher for NoOutputContains {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let pattern = &self.pattern;
        let verdict = match evidence.trace.answer.as_deref().filter(|answer| !model::text::is_blank(answer)) {
            // Silence keeps every such promise.
            None => Verdict::undecided("the agent gave no answer"),
            Some(answer) => match pattern.test(answer, &RegexBudget::new()) {
                Ok(true) => {
                    let found = pattern.found(answer).map_or_else(|| "a match".to_owned(), format::quoted);
                    Verdict::unmet(
                        format!("{pattern} matches"),
                        format!("an answer that does not match {pattern}"),
                        found,
                    )
                }
                Ok(false) => Verdict::met(format!("{pattern} does not match the answer")),
                Err(error) => Verdict::undecided(error),
            },
        };
        Ok(verdict.place(&pattern.place))
    }
}

#[derive(Debug)]
struct OutputContains {
    pattern: Pattern,
}

fn matcher(pattern: Pattern) -> Arc<dyn Matcher> {
    Arc::new(OutputContains { pattern })
}

impl Matcher for OutputContains {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let pattern = &self.pattern;
        let answer = trace.answer.as_deref().unwrap_or_default();
        let regex_budget = RegexBudget::new();
        let verdict = match pattern.test(answer, &regex_budget) {
            Ok(true) => {
                let found = pattern.found(answer).filter(|found| !found.is_empty());
                let found = found.map_or_else(String::new, |found| format!(": {}", format::quoted(found)));
                Verdict::met(format!("{pattern} matches{found}"))
            }
            Ok(false) => {
                let actual = match &trace.answer {
                    Some(answer) => format!("the answer {}", format::quoted(answer)),
                    None => "the agent gave no answer".into(),
                };
                let (hint, turn) = self.near(evidence, answer, &regex_budget);
                let expected = format!("an answer that matches {pattern}");
                let mut verdict = Verdict::unmet(format!("{pattern} does not match the answer"), expected, actual);
                verdict.at = turn.map(|turn| Position { turn: Some(turn), call: None });
                verdict.evidence(hint)
            }
            Err(error) => Verdict::undecided(error),
        };
        Ok(verdict.place(&pattern.place))
    }
}

impl OutputContains {
    /// Returns a hint if the answer would match without regard to case, or if an earlier text matches. The second
    /// value is the turn of that earlier text.
    fn near(&self, evidence: &Evidence, answer: &str, regex_budget: &RegexBudget) -> (Option<String>, Option<usize>) {
        let (flags, source) = (self.pattern.regex.flags(), self.pattern.regex.source());
        if !flags.contains('i') {
            let insensitive = Regex::parse(&format!("(?i{flags}){source}")).ok();
            let insensitive = insensitive.map(|regex| Pattern { regex, place: self.pattern.place.clone() });
            if let Some(insensitive) = insensitive
                && insensitive.test(answer, regex_budget) == Ok(true)
                && let Some(found) = insensitive.found(answer)
            {
                let flag = if self.pattern.is_literal() { "the `i` flag" } else { "`(?i)`" };
                return (Some(format!("with {flag} it would match {}", format::quoted(found))), None);
            }
        }
        let turns = &evidence.trace.turns;
        let turn = turns.iter().rposition(|turn| {
            turn.parent.is_none() && !turn.text.is_empty() && self.pattern.test(&turn.text, regex_budget) == Ok(true)
        });
        match turn {
            Some(turn) => {
                (Some(format!("the agent said so in turn {}, but only its last answer counts", turn + 1)), Some(turn))
            }
            None => (model::lookalike(source, answer), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::tests::{judged, underlined};
    use crate::example::EvidenceBuilder;

    fn contains(pattern: &str) -> Value {
        json!({"id": "a", "type": "output_contains", "pattern": pattern})
    }

    #[test]
    fn a_missing_answer_does_not_meet_a_forbidden_pattern() {
        let assertion = json!({"id": "a", "type": "no_output_contains", "pattern": "x"});
        for silent in [EvidenceBuilder::new(), EvidenceBuilder::new().answer(" ")] {
            assert_eq!(judged(&assertion, &silent.evidence()).status, Status::Undecided);
        }
    }

    #[test]
    fn a_near_miss_shows_what_would_have_matched() {
        let finding = judged(&contains("(?m)^done"), &EvidenceBuilder::new().answer("Well.\nDone.").evidence());
        assert_eq!(finding.reason, "/(?m)^done/ does not match the answer");
        assert_eq!(finding.actual.as_deref(), Some("the answer \"Well.\\nDone.\""));
        assert_eq!(finding.evidence, ["with `(?i)` it would match \"Done\""]);
        assert_eq!(underlined(&finding), "\"(?m)^done\"");
    }

    #[test]
    fn only_the_last_answer_counts_and_an_earlier_match_is_mentioned() {
        let evidence = EvidenceBuilder::new().answer("feat: x").call("Bash", json!({})).answer("Done.").evidence();
        let mut evidence = evidence;
        evidence.trace.turns[0].text = "feat: x".into();
        evidence.trace.turns[1].text = "Done.".into();
        let finding = judged(&contains("\\bfeat\\b"), &evidence);
        assert_eq!(finding.status, Status::Unmet);
        assert_eq!(finding.evidence, ["the agent said so in turn 1, but only its last answer counts"]);
        assert_eq!(finding.at.unwrap().turn, Some(0));
    }

    #[test]
    fn a_missing_answer_does_not_match() {
        let evidence = EvidenceBuilder::new().evidence();
        assert_eq!(judged(&contains("^$"), &evidence).status, Status::Met);
        assert_eq!(judged(&contains("x"), &evidence).actual.as_deref(), Some("the agent gave no answer"));
    }

    #[test]
    fn a_pattern_has_slashes_and_flags_or_is_a_bare_expression() {
        let matches = |pattern: &str, answer: &str| {
            let assertion = json!({"id": "a", "type": "matches", "pattern": pattern});
            judged(&assertion, &EvidenceBuilder::new().answer(answer).evidence()).status
        };
        assert_eq!(matches("/^b/m", "a\nb"), Status::Met);
        assert_eq!(matches("/\\p{Lu}/u", "é É"), Status::Met);
        assert_eq!(matches("(?i)^A", "ab"), Status::Met);
        assert_eq!(matches("/b/y", "ab"), Status::Unmet, "sticky means from the beginning");
        assert_eq!(matches("/usr/lib", "in /usr/lib"), Status::Met, "no flags, so no literal");
    }

    #[test]
    fn a_pattern_is_shown_as_written() {
        let assertion = json!({"id": "a", "type": "matches", "pattern": "/done/m"});
        let finding = judged(&assertion, &EvidenceBuilder::new().answer("Done.").evidence());
        assert_eq!(finding.reason, "/done/m does not match the answer");
        assert_eq!(finding.evidence, ["with the `i` flag it would match \"Done\""]);
    }
}
