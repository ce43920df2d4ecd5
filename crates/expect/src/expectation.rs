//! A whole expectation: for an agent's answer, for its whole result, or a schema for an answer.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind};
use serde_json::Value;

use crate::allowance::{Allowance, LimitedHost};
use crate::compile::Compiler;
use crate::found::Found;
use crate::host::Host;
use crate::idle;
use crate::matcher::Matcher;
use crate::operator::ALL;
use crate::rule::{Data, Evaluation, Scope};
use crate::rules::Rules;
use crate::source_location::SourceLocation;
use crate::strategy::Strategy;
use crate::text_diff::TextDiff;
use crate::tools;
use crate::value;
use crate::weight::final_score;

/// Key for the text comparison.
const DIFF: &str = "diff";

/// A compiled expectation: plain data that can be used from any thread.
#[derive(Debug)]
pub struct Expectation {
    matcher: Matcher,
    rules: Rules,
    diff: Option<TextDiff>,
    host: Arc<dyn Host>,
    key: &'static str,
}

impl Expectation {
    /// Compiles an expectation for a single value. `diff` is the text comparison of the case. Invalid parts are
    /// reported, and never match.
    pub fn from_value(
        node: &Node,
        rules: Rules,
        host: &Arc<dyn Host>,
        diff: Option<&Node>,
        problems: &mut Problems,
    ) -> Self {
        idle::warn(node, &rules, problems);
        Self::compile(rules, host, diff, "", problems, |compiler| compiler.matcher(node))
    }

    /// Compiles an expectation for an agent's whole result: `output`, `messages` and any other key. `tools` in it
    /// applies to the calls in the messages, and `diff` is the text comparison, like the parameter.
    pub fn from_result(
        node: &Node,
        rules: Rules,
        host: &Arc<dyn Host>,
        diff: Option<&Node>,
        problems: &mut Problems,
    ) -> Self {
        let (node, inner) = without_diff(node, diff.is_some(), problems);
        idle::warn(&node, &rules, problems);
        Self::compile(rules, host, inner.or(diff), "", problems, |compiler| tools::matcher(compiler, &node))
    }

    /// Compiles the expectation that a value conforms to a JSON Schema, whether or not the map looks like one.
    pub fn from_schema(node: &Node, rules: Rules, host: &Arc<dyn Host>, problems: &mut Problems) -> Self {
        Self::compile(rules, host, None, "schema", problems, |compiler| {
            Matcher::new(compiler.schema(node), SourceLocation::from_node(node))
        })
    }

    fn compile(
        rules: Rules,
        host: &Arc<dyn Host>,
        diff: Option<&Node>,
        key: &'static str,
        problems: &mut Problems,
        read: impl FnOnce(&mut Compiler<'_>) -> Matcher,
    ) -> Self {
        let host: Arc<dyn Host> = Arc::new(LimitedHost(Arc::clone(host)));
        let diff = diff.and_then(|node| TextDiff::read(node, &host, problems));
        let mut compiler =
            Compiler { operators: &ALL, rules: &rules, host: &host, diff: diff.as_ref(), problems, critical: false };
        let matcher = read(&mut compiler);
        Self { matcher, rules, diff, host, key }
    }

    /// Judges `actual`, which is `None` for a missing value.
    pub fn judge(&self, actual: Option<&Value>, data: &Data) -> Found {
        let run =
            Evaluation { host: &self.host, rules: &self.rules, diff: self.diff.as_ref(), data, asked: Cell::new(0) };
        let _allowance = Allowance::begin();
        self.levelled(self.matcher.judge(actual, &Scope::root(&run, self.key)))
    }

    /// Returns the result of the whole expectation, whose score is at least 0. A critical penalty that stands alone
    /// reduces the score of the whole. Other penalties that stand alone are reported when they are read.
    fn levelled(&self, mut found: Found) -> Found {
        let weight = self.matcher.meta.weight.filter(|weight| *weight < 0.0 && self.matcher.meta.critical);
        let Some(weight) = weight else {
            (found.score, found.most) = (final_score(found.score), final_score(found.most));
            return found;
        };
        let shares = Strategy::Weighted.distribute(&self.rules.budget, &[Some(weight)]);
        let share = shares.first().copied().unwrap_or_default();
        let (title, dimension) = (found.title.clone(), found.dimension.clone());
        let mut details = std::mem::take(&mut found.details);
        details.iter_mut().for_each(|detail| detail.weight *= share);
        let mut whole = Strategy::Weighted.aggregate([found], &[share], &self.matcher.place);
        for flaw in &mut whole.flaws {
            flaw.key = Some(self.key.to_owned());
        }
        Found { score: final_score(whole.score), most: final_score(whole.most), details, title, dimension, ..whole }
    }

    /// Returns the source position.
    pub fn place(&self) -> &SourceLocation {
        &self.matcher.place
    }
}

/// Splits `node` into the expectation and its text comparison.
fn without_diff<'n>(node: &'n Node, is_given: bool, problems: &mut Problems) -> (Cow<'n, Node>, Option<&'n Node>) {
    let (NodeKind::Map(entries), None) = (&node.kind, &node.tag) else { return (Cow::Borrowed(node), None) };
    let Some((key, diff)) = entries.iter().find(|(key, _)| key.value == DIFF) else {
        return (Cow::Borrowed(node), None);
    };
    if is_given {
        let message = "`diff` is given twice, next to `expect` and inside it";
        problems.push(Diagnostic::error(message).at(diff.source.excerpt(key.span)));
    }
    (Cow::Owned(value::without(node, DIFF)), Some(diff))
}
