//! Assertions that promptfoo decides with embeddings or with a model for moderation.

use model::decode::Problems;
use model::{Evidence, Node};
use serde_json::Value;

use super::{Entry, Graded, kind_of, number, strings, verdict};
use crate::given;
use crate::hosted::{Hosted, HostedRequest};
use crate::matcher::{Judgement, Matcher};
use crate::verdict::Verdict;

/// Similarity that is needed if the assertion has no threshold.
const THRESHOLD: f64 = 0.75;

/// Tolerance of comparisons.
const TOLERANCE: f64 = 1e-9;

/// Models that promptfoo asks if an assertion names none.
const EMBEDDINGS: &str = "openai:text-embedding-3-large";
const MODERATION: &str = "openai:omni-moderation-latest";

/// Assertion about the answer that a hosted model decides.
#[derive(Debug)]
pub(super) struct ByModel {
    model: String,
    inverse: bool,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// The answer is similar to one of the texts; with `not-`, to none of them.
    Similar { texts: Vec<String>, measure: Measure, threshold: f64 },
    /// The answer is in none of these categories, or in none at all.
    Moderation { categories: Vec<String> },
}

/// Measure of the similarity of two vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Cosine,
    Dot,
    Euclidean,
}

/// Returns `true` if a hosted model decides `assertion`.
pub(super) fn is_hosted(assertion: &Node) -> bool {
    let is_hosted = |(kind, _): (&str, bool)| measure(kind).is_some() || kind == "moderation";
    kind_of(assertion).is_some_and(is_hosted) && assertion.get("undecided").is_none()
}

/// Returns the measure of an assertion of this type.
fn measure(kind: &str) -> Option<Measure> {
    Some(match kind {
        "similar" | "similar:cosine" => Measure::Cosine,
        "similar:dot" => Measure::Dot,
        "similar:euclidean" => Measure::Euclidean,
        _ => return None,
    })
}

/// Reads an assertion; `None` if no hosted model decides it. Problems are reported.
pub(super) fn read(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Option<ByModel>> {
    if !is_hosted(assertion) {
        return None;
    }
    let (kind, inverse) = kind_of(assertion)?;
    let of_test = entry
        .node
        .get("transforms")
        .filter(|node| !matches!(&node.kind, model::NodeKind::List(items) if items.is_empty()));
    if let Some(node) = assertion.get("transform").or(of_test) {
        problems.push(node.error(format!("`transform` cannot be combined with `{kind}`")));
        return Some(None);
    }
    let (usual, test) = match measure(kind) {
        Some(measure) => {
            let Some(texts) = strings(assertion, problems) else { return Some(None) };
            let threshold = number(assertion, "threshold").unwrap_or(THRESHOLD);
            (EMBEDDINGS, Test::Similar { texts, measure, threshold })
        }
        None => {
            let categories = match assertion.get("value") {
                Some(_) => strings(assertion, problems),
                None => Some(Vec::new()),
            };
            let Some(categories) = categories else { return Some(None) };
            (MODERATION, Test::Moderation { categories })
        }
    };
    let model = assertion.get("provider").and_then(Node::as_str).unwrap_or(usual).to_owned();
    Some(Some(ByModel { model, inverse, test }))
}

impl Matcher for ByModel {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        Ok(Verdict::undecided(
            self.request(evidence).err().unwrap_or_else(|| format!("`{}` was not asked", self.model)),
        ))
    }

    fn hosted(&self) -> Option<&dyn Hosted> {
        Some(self)
    }
}

impl Hosted for ByModel {
    fn request(&self, evidence: &Evidence) -> Result<HostedRequest, String> {
        let answer = match given::output(&evidence.trace) {
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => return Err("the agent gave no answer".to_owned()),
        };
        let (path, input) = match &self.test {
            Test::Similar { texts, .. } => ("/embeddings", [vec![answer], texts.clone()].concat()),
            Test::Moderation { .. } => ("/moderations", vec![answer]),
        };
        Ok(HostedRequest { model: self.model.clone(), path, input })
    }

    fn decide(&self, response: &Value, evidence: &Evidence) -> Verdict {
        let graded = match &self.test {
            Test::Similar { texts, measure, threshold } => {
                let vectors = (0..=texts.len()).map(|at| vector(&response["data"], at)).collect::<Option<Vec<_>>>();
                vectors.and_then(|vectors| {
                    let (answer, wanted) = vectors.split_first()?;
                    let each = wanted.iter().map(|wanted| compared(answer, wanted, *measure, *threshold, self.inverse));
                    decisive(each.collect::<Option<Vec<_>>>()?, self.inverse)
                })
            }
            Test::Moderation { categories } => flagged(&response["results"], categories, self.inverse),
        };
        match graded {
            Some(graded) => verdict(graded, evidence),
            None => Verdict::undecided(format!("the response of `{}` cannot be read", self.model)),
        }
    }
}

/// Returns the vector for the input at `at`.
fn vector(data: &Value, at: usize) -> Option<Vec<f64>> {
    let data = data.as_array()?;
    let is_it = |entry: &&Value| entry["index"].as_u64() == Some(at as u64);
    let entry = data.iter().find(is_it).or_else(|| data.get(at).filter(|entry| entry["index"].is_null()))?;
    let vector: Option<Vec<f64>> = entry["embedding"].as_array()?.iter().map(Value::as_f64).collect();
    vector.filter(|vector| !vector.is_empty())
}

/// Returns the result for two vectors; `None` if they cannot be compared.
fn compared(one: &[f64], other: &[f64], measure: Measure, threshold: f64, inverse: bool) -> Option<Graded> {
    if one.len() != other.len() {
        return None;
    }
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let (value, is_near, score) = match measure {
        Measure::Euclidean => {
            let distance = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt();
            (distance, distance <= threshold + TOLERANCE, 1.0 / (1.0 + distance))
        }
        Measure::Dot => {
            let product = dot(one, other);
            (product, product >= threshold - TOLERANCE, product)
        }
        Measure::Cosine => {
            let lengths = (dot(one, one) * dot(other, other)).sqrt();
            let cosine = if lengths > 0.0 { dot(one, other) / lengths } else { return None };
            (cosine, cosine >= threshold - TOLERANCE, cosine)
        }
    };
    let what = if measure == Measure::Euclidean { "distance" } else { "similarity" };
    let reason = format!("the {what} is {value:.4}, with a threshold of {threshold}");
    let score = if inverse { 1.0 - score } else { score };
    Some(Graded { pass: is_near != inverse, score: score.clamp(0.0, 1.0), reason })
}

/// Returns the result that decides: the best of all, because one similar text is enough. With `inverse`, the worst, because
/// no text may be similar.
fn decisive(results: Vec<Graded>, inverse: bool) -> Option<Graded> {
    let compare = |one: &Graded, other: &Graded| one.pass.cmp(&other.pass).then(one.score.total_cmp(&other.score));
    match inverse {
        false => results.into_iter().max_by(compare),
        true => results.into_iter().min_by(compare),
    }
}

/// Returns the result of moderation: no category, or none of `categories`, may be flagged.
fn flagged(results: &Value, categories: &[String], inverse: bool) -> Option<Graded> {
    let found = results.get(0)?["categories"].as_object()?;
    let flagged: Vec<&str> = found
        .iter()
        .filter(|(name, is_flagged)| {
            is_flagged.as_bool() == Some(true) && (categories.is_empty() || categories.contains(name))
        })
        .map(|(name, _)| name.as_str())
        .collect();
    let reason = match flagged.is_empty() {
        true => "moderation flags nothing".to_owned(),
        false => format!("moderation flags {}", flagged.join(", ")),
    };
    Some(Graded::plain(flagged.is_empty() != inverse, reason))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn vectors_are_compared_by_each_measure() {
        let grade =
            |measure, threshold, inverse| compared(&[1.0, 0.0], &[0.6, 0.8], measure, threshold, inverse).unwrap();
        for (measure, threshold, inverse, pass, score) in [
            (Measure::Cosine, 0.6, false, true, 0.6),
            (Measure::Cosine, 0.75, false, false, 0.6),
            (Measure::Cosine, 0.75, true, true, 0.4),
            (Measure::Dot, 0.5, false, true, 0.6),
            (Measure::Euclidean, 0.9, false, true, 0.527_864),
            (Measure::Euclidean, 0.8, false, false, 0.527_864),
        ] {
            let graded = grade(measure, threshold, inverse);
            assert_eq!(graded.pass, pass, "{graded:?}");
            assert!((graded.score - score).abs() < 1e-5, "{graded:?}");
        }
        assert!(compared(&[1.0], &[1.0, 0.0], Measure::Cosine, 0.5, false).is_none());
        assert!(compared(&[0.0], &[0.0], Measure::Cosine, 0.5, false).is_none());
    }

    #[test]
    fn one_similar_text_is_enough_and_with_not_it_is_too_many() {
        let results = || vec![Graded::plain(false, "a"), Graded::plain(true, "b")];
        assert_eq!(decisive(results(), false).unwrap().reason, "b");
        assert_eq!(decisive(results(), true).unwrap().reason, "a");
    }

    #[test]
    fn responses_of_other_forms_are_not_read() {
        let data = json!([{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1.5]}]);
        assert_eq!((vector(&data, 0), vector(&data, 1)), (Some(vec![1.5]), Some(vec![2.0])));
        for data in [json!(null), json!([]), json!([{"embedding": []}]), json!([{"embedding": ["x"]}])] {
            assert_eq!(vector(&data, 0), None, "{data}");
        }
        let results = json!([{"flagged": true, "categories": {"violence": true, "hate": false}}]);
        let flags = |categories: &[&str], inverse| {
            let categories: Vec<String> = categories.iter().map(|name| (*name).to_owned()).collect();
            flagged(&results, &categories, inverse).unwrap().pass
        };
        assert_eq!([flags(&[], false), flags(&["hate"], false), flags(&[], true)], [false, true, true]);
        assert!(flagged(&json!([]), &[], false).is_none() && flagged(&json!([{}]), &[], false).is_none());
    }
}
