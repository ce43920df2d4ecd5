//! Result of matching one value.

use model::{Detail, Segment, Status, rounded_number};
use serde_json::Value;

use crate::notation::split_regex;
use crate::source_location::SourceLocation;
use crate::truncated_value::{shortened, truncated};
use crate::value;

/// Verdict on a match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pass {
    /// It matches.
    Yes,
    /// It does not match.
    No,
    /// It cannot be decided.
    #[default]
    Unknown,
}

impl Pass {
    /// Compares two values. It is undecided whether they are equal if they have a number of more than 64 bits, of which
    /// only the first digits are known.
    pub fn equal(actual: Option<&Value>, expected: &Value) -> Self {
        match actual.filter(|actual| value::same(actual, expected)) {
            Some(actual) if rounded_number(actual).is_some() => Self::Unknown,
            same => Self::from_bool(same.is_some()),
        }
    }

    /// Returns `Yes` if `holds`, else `No`.
    pub fn from_bool(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// Combines two verdicts that must both be `Yes`.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }

    /// Combines two verdicts of which at least one must be `Yes`.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Unknown,
        }
    }

    /// Converts to the status of a finding.
    pub fn status(self) -> Status {
        match self {
            Self::Yes => Status::Met,
            Self::No => Status::Unmet,
            Self::Unknown => Status::Undecided,
        }
    }
}

/// Result of matching one value: the score, and the mismatches.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Score of at most 1. Until the score of the whole is computed, it is below 0 if penalties outweigh. Undecided
    /// parts count with their lowest possible score.
    pub score: f64,
    /// Highest possible score if all undecided parts hold. Equal to `score` if nothing is undecided.
    pub most: f64,
    /// Verdict.
    pub pass: Pass,
    /// Mismatches.
    pub flaws: Vec<Flaw>,
    /// Parts.
    pub details: Vec<Detail>,
    /// Title.
    pub title: Option<String>,
    /// Category under which it is reported.
    pub dimension: Option<String>,
    /// True if its failure fails the whole expectation.
    pub critical: bool,
    /// Source position, if it is a separate expectation.
    pub place: Option<SourceLocation>,
}

/// Number of mismatches of a value for which the complete expected and actual values are stored. Without a limit, a
/// list with thousands of missing items would be stored thousands of times.
const MAX_WHOLE: usize = 64;

/// A mismatch.
#[derive(Debug, Clone)]
pub struct Flaw {
    /// Path. `None` until the enclosing node sets its own path.
    pub key: Option<String>,
    /// Description in one line. `None` if there is only a general text.
    pub message: Option<String>,
    /// Expected value.
    pub expected: Option<Value>,
    /// Actual value.
    pub actual: Option<Value>,
    /// Difference between the strings.
    pub diff: Vec<Segment>,
    /// True if it fails the whole expectation.
    pub critical: bool,
    /// True if it is undecided whether it is a mismatch.
    pub undecided: bool,
    /// True if it did not reduce the score, so that no threshold can compensate for it.
    pub firm: bool,
    /// Source position.
    pub place: SourceLocation,
}

impl Found {
    /// Returns a full match.
    pub fn full() -> Self {
        Self::scored(1.0, Pass::Yes)
    }

    /// Returns a result without parts and without mismatches.
    pub fn scored(score: f64, pass: Pass) -> Self {
        Self { score, most: score, pass, ..Self::default() }
    }

    /// Returns a result that does not match, with one mismatch.
    pub fn flawed(flaw: Flaw) -> Self {
        Self { flaws: vec![flaw], ..Self::scored(0.0, Pass::No) }
    }

    /// Returns the mismatch for a value that does not have the type named in `expected`. `critical` is true if it
    /// fails the whole expectation.
    pub fn wrong_type(expected: &str, actual: Option<&Value>, critical: bool, place: &SourceLocation) -> Self {
        let message = format!("{expected}, not {}", value::kind(actual));
        Self::flawed(Flaw { critical, ..Flaw::new(place, message).actual(actual) })
    }

    /// Returns the result for a value of which [`Pass::equal`] cannot tell whether it is equal to another.
    pub fn rounded(actual: Option<&Value>, place: &SourceLocation) -> Self {
        let message = format!(
            "{} has a number of more than 64 bits, whose digits are not known; ids of that length must be strings",
            value::shown(actual)
        );
        Self::unknown(Flaw::new(place, message).actual(actual))
    }

    /// Returns an undecided result, with the reason.
    pub fn unknown(flaw: Flaw) -> Self {
        Self { most: 1.0, flaws: vec![Flaw { undecided: true, ..flaw }], ..Self::scored(0.0, Pass::Unknown) }
    }

    /// Adds the mismatches of a part.
    pub fn add_flaws(&mut self, flaws: Vec<Flaw>) {
        let room = MAX_WHOLE.saturating_sub(self.flaws.len());
        let short = |(index, flaw): (usize, Flaw)| if index < room { flaw } else { flaw.in_short() };
        self.flaws.extend(flaws.into_iter().enumerate().map(short));
    }

    /// Returns `true` if a critical part certainly fails.
    pub fn fails_critically(&self) -> bool {
        (self.critical && self.pass == Pass::No) || self.flaws.iter().any(Flaw::is_critical)
    }

    /// Returns `true` if it is undecided whether a critical part fails.
    pub fn may_fail_critically(&self) -> bool {
        (self.critical && self.pass == Pass::Unknown) || self.flaws.iter().any(|flaw| flaw.critical && flaw.undecided)
    }
}

/// Collects the branches of an expectation, any one of which is enough, to report the mismatch if none of them matches.
#[derive(Debug, Clone, Copy, Default)]
pub struct BranchTally {
    critical: bool,
    /// True if it is undecided whether something critical failed.
    doubtful: bool,
    /// Best score, and `true` if the branch with this score has a mismatch that did not reduce the score.
    nearest: Option<(f64, bool)>,
}

impl BranchTally {
    /// Adds a branch with its score.
    pub fn add(&mut self, found: &Found, score: f64) {
        self.critical |= found.fails_critically();
        self.doubtful |= found.may_fail_critically();
        let firm = found.flaws.iter().any(|flaw| flaw.firm);
        self.nearest = Some(match self.nearest {
            Some((best, was_firm)) if best > score || (best == score && !was_firm) => (best, was_firm),
            _ => (score, firm),
        });
    }

    /// Returns the combined mismatch of all branches, given their verdict.
    pub fn flaw(&self, pass: Pass, flaw: Flaw) -> Flaw {
        let surely = self.critical || flaw.critical;
        Flaw {
            critical: surely || self.doubtful,
            undecided: pass == Pass::Unknown || (self.doubtful && !surely),
            firm: self.nearest.is_some_and(|(_, firm)| firm),
            ..flaw
        }
    }
}

impl Flaw {
    /// Creates a mismatch at `place`.
    pub fn new(place: &SourceLocation, message: impl Into<String>) -> Self {
        Self {
            key: None,
            message: Some(message.into()),
            expected: None,
            actual: None,
            diff: Vec::new(),
            critical: false,
            undecided: false,
            firm: false,
            place: place.clone(),
        }
    }

    /// Returns `true` if it certainly fails the whole expectation.
    pub fn is_critical(&self) -> bool {
        self.critical && !self.undecided
    }

    /// Sets the expected value.
    pub fn expected(mut self, expected: Value) -> Self {
        self.expected = Some(expected);
        self
    }

    /// Sets the actual value. A large value is replaced by a short description.
    pub fn actual(mut self, actual: Option<&Value>) -> Self {
        self.actual = actual.map(truncated);
        self
    }

    /// Returns the mismatch with large values shortened.
    fn in_short(mut self) -> Self {
        self.expected = self.expected.map(shortened);
        self.actual = self.actual.map(shortened);
        self
    }

    /// Sets the text difference.
    pub fn diff(mut self, diff: Vec<Segment>) -> Self {
        self.diff = diff;
        self
    }

    /// Returns a hint if the actual text only looks like the expected one.
    pub fn lookalike(&self) -> Option<String> {
        let actual = self.actual.as_ref()?.as_str()?;
        let like = |wanted: &Value| {
            let text = wanted.as_str()?;
            model::lookalike(split_regex(text).map_or(text, |(source, _)| source), actual)
        };
        match self.expected.as_ref()? {
            Value::Array(any) => any.iter().find_map(like),
            wanted => like(wanted),
        }
    }

    /// Converts the mismatch to a failure for reports.
    pub fn into_failure(self) -> model::Failure {
        let hint = self.lookalike();
        let message = self.message.clone().unwrap_or_else(|| GENERAL.to_owned());
        model::Failure {
            critical: self.is_critical(),
            key: self.key.unwrap_or_default(),
            message: hint.map_or_else(|| message.clone(), |hint| format!("{message}; {hint}")),
            expected: self.expected,
            actual: self.actual,
            diff: self.diff,
            source: self.place.is_in_file().then(|| self.place.excerpt()),
        }
    }
}

/// Fallback message if there is no more specific one.
const GENERAL: &str = "it does not match";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_looks_like_the_expected_one_gets_a_hint() {
        let source = model::Source::new("", "");
        let place = SourceLocation::from_node(&model::Node::from_json(&Value::Null, &source));
        let flaw = |actual: &str| Flaw::new(&place, "no").expected("caf\u{e9}".into()).actual(Some(&actual.into()));
        let message = flaw("cafe\u{301}").into_failure().message;
        assert_eq!(
            message,
            "no; the same text is there in another Unicode form: its accents are written in another way"
        );
        assert_eq!(flaw("tea").into_failure().message, "no");
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_never_known_to_be_equal() {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let long = json("[120000000000000000000000000001]");
        assert_eq!(Pass::equal(Some(&long), &json("[120000000000000000000000000002]")), Pass::Unknown);
        assert_eq!(Pass::equal(Some(&long), &json("[130000000000000000000000000000]")), Pass::No);
        assert_eq!(Pass::equal(Some(&json("18446744073709551615")), &json("18446744073709551615")), Pass::Yes);
        assert_eq!(Pass::equal(None, &Value::Null), Pass::No);
    }
}
