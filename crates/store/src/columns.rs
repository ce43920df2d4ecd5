//! Columns of a trial, which lists show without reading its events.

use std::borrow::Cow;

use jiff::Timestamp;
use model::statistics::Bounds;
use model::{Outcome, Tokens, TrialRecord, TrialRow, Usage};
use serde::de::DeserializeOwned;

use crate::StoreError;

/// Columns of a trial that are derived from its record, in the order of [`columns`].
pub(crate) const COLUMNS: [&str; 33] = [
    "suite",
    "case_id",
    "arm",
    "agent",
    "model",
    "variant",
    "repetition",
    "outcome",
    "flaky",
    "fault",
    "because",
    "score",
    "max_score",
    "started_us",
    "finished_us",
    "duration_ms",
    "turns",
    "tool_calls",
    "input",
    "cache_read",
    "cache_write",
    "output",
    "reasoning",
    "cost_usd",
    "token_budget",
    "attempts",
    "errors",
    "skill_version",
    "skill_hash",
    "agent_ms",
    "quarantined",
    "least_score",
    "most_score",
];

/// Value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Column<'a> {
    Null,
    Whole(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl Column<'_> {
    /// Returns `true` if `stored` is this value. Fractions may differ in their last digit, because they were stored as
    /// text in between, and PostgreSQL stores another character instead of NUL.
    pub(crate) fn is_same(&self, stored: &Column<'_>) -> bool {
        match (self, stored) {
            (Self::Real(one), Column::Real(other)) => (one - other).abs() <= one.abs() * 1e-12,
            (Self::Text(one), Column::Text(other)) if one.contains('\0') => {
                one == other || one.replace('\0', "\u{fffd}") == *other
            }
            (one, other) => one == other,
        }
    }
}

impl std::fmt::Display for Column<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => write!(f, "`{text}`"),
        }
    }
}

impl From<i64> for Column<'_> {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<bool> for Column<'_> {
    fn from(value: bool) -> Self {
        Self::Whole(i64::from(value))
    }
}

impl From<f64> for Column<'_> {
    /// A fraction that is not a number is not known.
    fn from(number: f64) -> Self {
        if number.is_nan() { Self::Null } else { Self::Real(number) }
    }
}

impl<'a> From<&'a str> for Column<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Column<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'a, T: Into<Column<'a>>> From<Option<T>> for Column<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

/// Returns the values of [`COLUMNS`].
pub(crate) fn columns(record: &TrialRecord) -> [Column<'_>; COLUMNS.len()] {
    let known = |number: Option<u64>| number.map(|number| number as i64).into();
    let Usage { tokens, cost_usd } = record.spent();
    let score = record.first_score();
    let started_us = record.started_at.as_microsecond();
    let skill = record.skill.as_ref();
    [
        (&*record.suite).into(),
        (&*record.case).into(),
        (&*record.arm).into(),
        (&*record.agent).into(),
        record.model.as_deref().into(),
        record.variant.as_deref().into(),
        (record.repetition as i64).into(),
        record.outcome.name().into(),
        record.flaky.into(),
        record.fault.and_then(|fault| word(&fault)).into(),
        record.reason.as_deref().into(),
        record.score.into(),
        record.max_score.into(),
        started_us.into(),
        started_us.saturating_add((record.duration_ms as i64).saturating_mul(1000)).into(),
        (record.duration_ms as i64).into(),
        (record.turn_count as i64).into(),
        (record.tool_calls.len() as i64).into(),
        known(tokens.map(|tokens| tokens.input)),
        known(tokens.map(|tokens| tokens.cache_read)),
        known(tokens.map(|tokens| tokens.cache_write)),
        known(tokens.map(|tokens| tokens.output)),
        known(tokens.and_then(|tokens| tokens.reasoning)),
        cost_usd.into(),
        record.limits.token_budget.into(),
        (record.attempts.len().max(1) as i64).into(),
        (record.errors.len() as i64).into(),
        skill.and_then(|skill| skill.version.as_deref()).into(),
        skill.map(|skill| skill.content_hash.as_str()).into(),
        known(record.agent_ms),
        record.quarantine.is_some().into(),
        score.map(|score| score.min).into(),
        score.map(|score| score.max).into(),
    ]
}

/// Returns the serialised name of a fieldless enum value.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned))
}

/// Columns of a trial in a list, in the order in which [`trial_row`] reads them.
pub(crate) const LISTED: &str =
    "runs.id, runs.label, trials.id, suite, case_id, arm, agent, model, variant, repetition,
    outcome, flaky, quarantined, fault, because, score, max_score, least_score, most_score, trials.started_us,
    trials.duration_ms, agent_ms, turns, tool_calls, input, cache_read, cache_write, output, reasoning, cost_usd,
    token_budget, attempts, errors, skill_version, skill_hash";

/// Reads the columns [`LISTED`], of which `next` returns one after another. They are read by position, because looking up
/// the names for each row would take longer than everything else.
pub(crate) fn trial_row<E: From<StoreError>>(next: impl FnMut() -> Result<Column<'static>, E>) -> Result<TrialRow, E> {
    let mut columns = Reader { next };
    Ok(TrialRow {
        run: columns.text()?,
        label: columns.known_text()?,
        id: columns.text()?,
        suite: columns.text()?,
        case: columns.text()?,
        arm: columns.text()?,
        agent: columns.text()?,
        model: columns.known_text()?,
        variant: columns.known_text()?,
        repetition: columns.whole()?.unsigned_abs(),
        // An outcome that this version does not know says nothing about the agent.
        outcome: value(columns.text()?).unwrap_or(Outcome::Undecided),
        flaky: columns.whole()? != 0,
        quarantined: columns.whole()? != 0,
        fault: columns.known_text()?.and_then(value),
        reason: columns.known_text()?,
        score: columns.known_real()?,
        max_score: columns.known_real()?,
        score_bounds: columns.known_real()?.zip(columns.known_real()?).map(|(min, max)| Bounds { min, max }),
        started_at: time(columns.whole()?),
        duration_ms: columns.whole()?.unsigned_abs(),
        agent_ms: columns.known_whole()?,
        turns: columns.count()?,
        tool_calls: columns.count()?,
        tokens: columns.tokens()?,
        cost_usd: columns.known_real()?,
        token_budget: columns.known_real()?,
        attempts: columns.count()?,
        errors: columns.count()?,
        skill_version: columns.known_text()?,
        skill_hash: columns.known_text()?,
    })
}

/// Reads the columns of a row one after another.
struct Reader<F> {
    next: F,
}

impl<E: From<StoreError>, F: FnMut() -> Result<Column<'static>, E>> Reader<F> {
    fn known_text(&mut self) -> Result<Option<String>, E> {
        match (self.next)()? {
            Column::Null => Ok(None),
            Column::Text(text) => Ok(Some(text.into_owned())),
            other => Err(unexpected(&other)),
        }
    }

    fn text(&mut self) -> Result<String, E> {
        self.known_text()?.ok_or_else(|| unexpected(&Column::Null))
    }

    fn whole(&mut self) -> Result<i64, E> {
        match (self.next)()? {
            Column::Whole(number) => Ok(number),
            other => Err(unexpected(&other)),
        }
    }

    fn known_whole(&mut self) -> Result<Option<u64>, E> {
        match (self.next)()? {
            Column::Null => Ok(None),
            Column::Whole(number) => Ok(Some(number.unsigned_abs())),
            other => Err(unexpected(&other)),
        }
    }

    fn known_real(&mut self) -> Result<Option<f64>, E> {
        match (self.next)()? {
            Column::Null => Ok(None),
            Column::Real(number) => Ok(Some(number)),
            other => Err(unexpected(&other)),
        }
    }

    fn count(&mut self) -> Result<usize, E> {
        Ok(usize::try_from(self.whole()?).unwrap_or(0))
    }

    fn tokens(&mut self) -> Result<Option<Tokens>, E> {
        let input = self.known_whole()?;
        let [cache_read, cache_write, output] =
            [self.known_whole()?, self.known_whole()?, self.known_whole()?].map(Option::unwrap_or_default);
        let reasoning = self.known_whole()?;
        Ok(input.map(|input| Tokens { input, cache_read, cache_write, output, reasoning }))
    }
}

fn unexpected<E: From<StoreError>>(column: &Column<'_>) -> E {
    StoreError::Damaged(format!("a column of a trial is {column}")).into()
}

/// Parses a fieldless enum value from its serialised name.
pub(crate) fn value<T: DeserializeOwned>(name: String) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

/// Returns the time of a column.
pub(crate) fn time(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
