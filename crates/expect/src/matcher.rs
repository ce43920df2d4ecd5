//! A compiled expectation of one value.

use std::borrow::Cow;
use std::cell::Cell;

use model::Detail;
use serde_json::Value;

use crate::found::{Flaw, Found, Pass};
use crate::host::Host;
use crate::meta::Meta;
use crate::path;
use crate::place::Place;
use crate::returned;
use crate::rules::Rules;
use crate::strategy::Strategy;
use crate::text_diff::TextDiff;
use crate::weight::{NOISE, final_score, settled};

/// How deep matching may go; only a custom operator that matches its own value again gets there.
const MOST_DEPTH: usize = 200;

/// What judges one value.
pub trait Rule: std::fmt::Debug + Send + Sync {
    /// What `actual`, which is missing where it is `None`, comes to.
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found;
}

/// A compiled expectation of one value, with what is said about it.
#[derive(Debug)]
pub struct Matcher {
    /// What is said about it.
    pub meta: Meta,
    /// Where it is written.
    pub place: Place,
    /// What judges the value.
    pub rule: Box<dyn Rule>,
    /// Whether everything fails where this, or some part of it, is not met. A penalty is not to be met.
    pub critical: bool,
}

/// What a whole matching has in common.
pub struct Run<'a> {
    /// Who runs code and regular expressions.
    pub host: &'a dyn Host,
    /// The same, for what is compiled on the way.
    pub shared_host: &'a std::sync::Arc<dyn Host>,
    /// What holds everywhere.
    pub rules: &'a Rules,
    /// How the case compares texts.
    pub diff: Option<&'a TextDiff>,
    /// The variables that expressions and operators see.
    pub data: &'a Value,
    /// The case's input.
    pub input: Option<&'a Value>,
    /// The case as it is written.
    pub fixture: &'a Value,
    /// What operators of the user's have asked while others waited for them.
    pub asked: Cell<usize>,
}

/// Where in the value matching stands, and what was said above it.
#[derive(Clone)]
pub struct At<'a> {
    /// What is the same everywhere.
    pub run: &'a Run<'a>,
    /// The path.
    pub key: String,
    /// Whether the key is there, whatever its value.
    pub present: bool,
    /// The threshold for confidences that bring none of their own.
    pub threshold: Option<f64>,
    /// Whether a failure here fails everything.
    pub critical: bool,
    /// How the items of this value are counted, if the operator around it says so.
    pub strategy: Option<Strategy>,
    /// Whether nobody will look at how texts differ.
    pub quiet: bool,
    /// Whether it counts in favour when this does not hold, so that nothing may fail by a mistake of the user's.
    pub negated: bool,
    /// How deep it is, against matching without end.
    pub depth: usize,
    /// How many operators of the user's wait for what this comes to.
    pub waiting: usize,
}

impl<'a> At<'a> {
    /// The beginning, at `key`.
    pub fn root(run: &'a Run<'a>, key: &str) -> Self {
        Self {
            run,
            key: key.to_owned(),
            present: false,
            threshold: None,
            critical: false,
            strategy: None,
            quiet: false,
            negated: run.rules.denied,
            depth: 0,
            waiting: 0,
        }
    }

    /// A part of the value, at `key` below here; nothing is below when `key` is empty.
    pub fn below(&self, key: &str) -> Self {
        Self { strategy: None, depth: self.depth + 1, ..self.called(path::below(&self.key, key)) }
    }

    /// The same place under another path.
    fn called(&self, key: String) -> Self {
        let Self { run, key: _, present, threshold, critical, strategy, quiet, negated, depth, waiting } = *self;
        Self { run, key, present, threshold, critical, strategy, quiet, negated, depth, waiting }
    }

    /// A part of the value of which only the verdict counts.
    pub fn quietly(&self) -> Self {
        Self { quiet: true, ..self.below("") }
    }

    /// Item `index` of `count` that an operator has.
    pub fn item(&self, operator: &str, index: usize, count: usize) -> Self {
        if count > 1 { self.below(&format!("{operator}[{index}]")) } else { self.below("") }
    }
}

impl Matcher {
    /// A matcher of which nothing is said.
    pub fn of(rule: Box<dyn Rule>, place: Place) -> Self {
        Self { meta: Meta::default(), place, rule, critical: false }
    }

    /// What `actual` comes to.
    pub fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        if at.depth > MOST_DEPTH {
            return Found::unknown(Flaw::new(&self.place, format!("matching goes deeper than {MOST_DEPTH} levels")));
        }
        let here = self.here(at);
        let mut found = self.rule.judge(actual, &here);
        found.score = settled(found.score);
        found.most = settled(found.most).max(found.score);
        self.apply_threshold(&mut found);
        for flaw in &mut found.flaws {
            flaw.key.get_or_insert_with(|| here.key.clone());
            flaw.critical |= here.critical;
            flaw.undecided |= found.pass == Pass::Unknown;
            if flaw.message.is_none() {
                flaw.message.clone_from(&self.meta.title);
            }
        }
        found.place = Some(self.place.clone());
        self.describe(&mut found);
        wrap(&mut found, &here.key);
        found
    }

    /// Where matching stands in here: as before, but for what is said about this expectation.
    fn here<'m, 'a>(&self, at: &'m At<'a>) -> Cow<'m, At<'a>> {
        let Meta { critical, threshold, strategy, .. } = self.meta;
        if !critical && threshold.is_none() && strategy.is_none() {
            return Cow::Borrowed(at);
        }
        Cow::Owned(At {
            critical: at.critical || critical,
            threshold: threshold.or(at.threshold),
            strategy: strategy.or(at.strategy),
            ..at.clone()
        })
    }

    /// A threshold of its own decides whether it passes; its own parts are not looked at any more. It makes up for
    /// nothing that is critical or has cost no score.
    fn apply_threshold(&self, found: &mut Found) {
        let Some(threshold) = self.meta.threshold else { return };
        let must_hold = |flaw: &&Flaw| flaw.critical || flaw.firm;
        if found.flaws.iter().filter(must_hold).any(|flaw| !flaw.undecided) {
            return;
        }
        let reaches = |score: f64| score >= threshold - NOISE;
        let enough = match (reaches(found.score), reaches(found.most)) {
            (true, _) => Pass::Yes,
            (false, true) => Pass::Unknown,
            (false, false) => Pass::No,
        };
        let is_open = found.flaws.iter().any(|flaw| must_hold(&flaw));
        found.pass = if is_open { enough.and(Pass::Unknown) } else { enough };
        match found.pass {
            Pass::Yes => found.flaws.clear(),
            // The others are made up for, or are not: that is what nobody can say.
            Pass::Unknown => found.flaws.retain(|flaw| flaw.undecided),
            Pass::No => {}
        }
        if found.pass == Pass::Yes || !found.flaws.is_empty() {
            return;
        }
        let message = if found.pass == Pass::Unknown {
            format!(
                "a confidence from {:.2} to {:.2} may reach the threshold {threshold} or not",
                found.score, found.most
            )
        } else {
            returned::below_threshold(found.score, threshold)
        };
        found.flaws.push(Flaw::new(&self.place, message));
    }

    /// Puts the user's words on the result, and on its direct parts that have none of their own.
    fn describe(&self, found: &mut Found) {
        let Meta { title, dimension, critical, .. } = &self.meta;
        let fill = |own: &mut Option<String>, given: &Option<String>| {
            if own.is_none() {
                own.clone_from(given);
            }
        };
        fill(&mut found.title, title);
        fill(&mut found.dimension, dimension);
        found.critical |= critical;
        for detail in &mut found.details {
            fill(&mut detail.title, title);
            fill(&mut detail.dimension, dimension);
            detail.critical |= critical;
        }
    }
}

/// Makes the result one part of what is above it, unless it is that already. The whole value has no part of its own.
fn wrap(found: &mut Found, key: &str) {
    if key.is_empty() || found.details.first().is_some_and(|first| first.key == key) {
        return;
    }
    let details = std::mem::take(&mut found.details);
    found.details.push(Detail {
        key: key.to_owned(),
        title: found.title.clone(),
        dimension: found.dimension.clone(),
        critical: found.critical,
        weight: 1.0,
        score: final_score(found.score),
        status: found.pass.status(),
        passed_over: false,
        details,
    });
}
