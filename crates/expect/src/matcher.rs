//! Compiled expectation for a single value.

use std::borrow::Cow;

use model::Detail;
use serde_json::Value;

use crate::found::{Flaw, Found, Pass};
use crate::meta::Meta;
use crate::quick_score::QuickScore;
use crate::returned;
use crate::rule::{Rule, Scope};
use crate::source_location::SourceLocation;
use crate::weight::{NOISE, final_score, settled};

/// Maximum depth of matching. Only a custom operator that matches its own value again can reach it.
const MAX_DEPTH: usize = 200;

/// Compiled expectation for a single value, with its metadata.
#[derive(Debug)]
pub struct Matcher {
    /// Metadata.
    pub meta: Meta,
    /// Source position.
    pub place: SourceLocation,
    /// Rule that judges the value.
    pub rule: Box<dyn Rule>,
    /// True if the whole expectation fails when this part, or some part of it, is not met. Always false for a penalty,
    /// which need not be met.
    pub critical: bool,
}

impl Matcher {
    /// Creates a matcher without metadata.
    pub fn new(rule: Box<dyn Rule>, place: SourceLocation) -> Self {
        Self { meta: Meta::default(), place, rule, critical: false }
    }

    /// Judges `actual`.
    pub fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        if at.depth > MAX_DEPTH {
            return Found::unknown(Flaw::new(&self.place, format!("matching goes deeper than {MAX_DEPTH} levels")));
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
        self.label(&mut found);
        wrap(&mut found, &here.key);
        found
    }

    /// Returns the score of `actual` in the same way as [`Rule::quick_score`]. A part with metadata has none.
    pub fn quick_score(&self, actual: Option<&Value>, at: &Scope<'_>) -> Option<QuickScore> {
        if self.meta == Meta::default() { self.rule.quick_score(actual, at) } else { None }
    }

    /// Returns the position with the metadata of this expectation applied.
    fn here<'m, 'a>(&self, at: &'m Scope<'a>) -> Cow<'m, Scope<'a>> {
        let Meta { critical, threshold, strategy, .. } = self.meta;
        if !critical && threshold.is_none() && strategy.is_none() {
            return Cow::Borrowed(at);
        }
        Cow::Owned(Scope {
            critical: at.critical || critical,
            threshold: threshold.or(at.threshold),
            strategy: strategy.or(at.strategy),
            ..at.clone()
        })
    }

    /// Applies the expectation's own threshold, which determines the verdict instead of its parts. It cannot
    /// compensate for mismatches that are critical or did not reduce the score.
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
            // It is undecided whether the threshold compensates for the other mismatches.
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

    /// Sets the user's title and dimension on the result, and on its direct parts that have none.
    fn label(&self, found: &mut Found) {
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

/// Wraps the result as one part of the enclosing result, unless it already is one. The whole value is not wrapped.
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
