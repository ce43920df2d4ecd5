//! `$sequence`: expectations are met by items in the same order.

use std::collections::BTreeMap;

use model::Node;

use crate::candidates::{Candidates, CriticalState};
use crate::compile::Compiler;
use crate::found::Pass;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let steps = compiler.list(operand, operator)?;
    Some(Box::new(Sequence { steps, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct Sequence {
    steps: Vec<Matcher>,
    place: SourceLocation,
}

impl Rule for Sequence {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(Value::Array(items)) = actual else {
            let critical = self.steps.iter().any(|step| step.critical);
            return Found::wrong_type("`$sequence` needs a list", actual, critical, &self.place);
        };
        let weights: Vec<_> = self.steps.iter().map(|step| step.meta.weight).collect();
        let shares = at.strategy.unwrap_or_default().distribute(&at.run.rules.budget, &weights);
        let score = if shares.iter().any(|share| *share > 0.0) { 0.0 } else { 1.0 };
        let mut ways = Outcomes::from([(0, Outcome { score, most: score, pass: Pass::Yes })]);
        let mut whole = Found::full();
        let mut penalties = Pass::Yes;
        let mut stopped = None;
        for (number, (step, share)) in self.steps.iter().zip(shares).enumerate() {
            let only_from = if ways.len() == 1 { ways.keys().next().copied() } else { None };
            let mut search = search(items, &ways, step, share, at);
            ways = std::mem::take(&mut search.ways);
            stopped = search.stopped.clone().or(stopped);
            let name = format!("step {} of {}", number + 1, self.steps.len());
            let step_message =
                StepMessage { step, name, from: only_from.unwrap_or_default(), stopped: stopped.as_ref() };
            match (search.is_met, search.is_missed) {
                (true, false) if share < 0.0 && step.meta.critical => whole.flaws.push(step_message.penalty()),
                (true, true) if share < 0.0 => {
                    penalties = Pass::Unknown;
                    whole.flaws.push(step_message.doubt(step.meta.critical));
                }
                (_, true) if share >= 0.0 => {
                    let own = Flaw { critical: step.meta.critical, ..step_message.missed(actual) };
                    if search.is_met {
                        let critical = search.tried.flaw(Pass::Unknown, own, step.critical).critical;
                        whole.flaws.push(step_message.doubt(critical));
                    } else {
                        let own = search.tried.flaw(Pass::No, own, step.critical);
                        whole.add_flaws(search.into_flaws(own));
                    }
                }
                _ => {}
            }
        }
        let end = ways.into_values().reduce(Outcome::or).unwrap_or(Outcome { score, most: score, pass: Pass::Yes });
        Found { score: end.score, most: end.most, pass: end.pass.and(penalties), ..whole }
    }
}

/// Possible result of the steps so far.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    score: f64,
    most: f64,
    pass: Pass,
}

/// Possible results of the steps so far, by the index from which the search for the next step starts. There are
/// several if it is undecided which item met a step.
type Outcomes = BTreeMap<usize, Outcome>;

impl Outcome {
    /// Combines two possible results, either of which may apply.
    fn or(self, other: Self) -> Self {
        let pass = if self.pass == other.pass { self.pass } else { Pass::Unknown };
        Self { score: self.score.min(other.score), most: self.most.max(other.most), pass }
    }

    /// Adds a step, whose result is between `least` and `most` of its `share`.
    fn after(self, share: f64, least: f64, most: f64, pass: Pass) -> Self {
        // A penalty whose own parts cost more than they earn is not incurred, but it is not a reward either.
        let (least, most) = if share < 0.0 { (most.max(0.0), least.max(0.0)) } else { (least, most) };
        Self { score: self.score + share * least, most: self.most + share * most, pass: self.pass.and(pass) }
    }
}

fn add(ways: &mut Outcomes, from: usize, way: Outcome) {
    ways.entry(from).and_modify(|known| *known = known.or(way)).or_insert(way);
}

/// Result of the search for one step.
struct Search {
    /// Indices from which the search for the next step may start.
    ways: Outcomes,
    /// True if the step is met for at least one start.
    is_met: bool,
    /// True if the step is not met for at least one start.
    is_missed: bool,
    /// Items that do not match.
    tried: Candidates,
    /// First index that is searched for every start.
    last: usize,
    /// Reason why it is undecided whether some item matches.
    stopped: Option<Flaw>,
}

impl Search {
    /// Returns the mismatches of the nearest item, and `own`, which says that it is not enough.
    fn into_flaws(self, own: Flaw) -> Vec<Flaw> {
        let nearest = self.tried.nearest().filter(|(_, score, _)| *score > 0.0);
        let (perhaps, mut flaws) =
            nearest.map(|(index, _, flaws)| (index < self.last, flaws.to_vec())).unwrap_or_default();
        for flaw in &mut flaws {
            flaw.undecided |= perhaps;
            // Another item might not have failed critically.
            flaw.critical &= own.critical;
        }
        flaws.push(own);
        flaws
    }
}

/// Searches for `step` from each of the possible starts. Each item is judged only once.
fn search(items: &[Value], from: &Outcomes, step: &Matcher, share: f64, at: &Scope<'_>) -> Search {
    let last = from.keys().next_back().copied().unwrap_or_default();
    let (ways, tried) = (Outcomes::new(), Candidates::default());
    let mut search = Search { ways, is_met: false, is_missed: false, tried, last, stopped: None };
    let inside = Scope { present: true, ..at.quietly() };
    // A critical penalty that is met fails the whole expectation. A penalty that is not met does not fail anything.
    let met = Pass::from_bool(share >= 0.0 || !step.meta.critical);
    let missed = Pass::from_bool(share < 0.0);
    let mut waiting = from.iter().map(|(from, way)| (*from, *way)).peekable();
    let mut looking: Vec<(usize, Outcome)> = Vec::new();
    let mut scores: Vec<(usize, CriticalState, f64, f64)> = Vec::new();
    let first = from.keys().next().copied().unwrap_or_default();
    for (index, item) in items.iter().enumerate().skip(first) {
        while let Some(way) = waiting.next_if(|(from, _)| *from <= index) {
            looking.push(way);
        }
        if looking.is_empty() {
            if waiting.peek().is_none() {
                break;
            }
            continue;
        }
        let found = step.judge(Some(item), &inside);
        if found.pass != Pass::No {
            search.is_met = true;
            let all = looking.iter().map(|(_, way)| *way).reduce(Outcome::or);
            all.into_iter().for_each(|way| add(&mut search.ways, index + 1, way.after(share, 1.0, 1.0, met)));
        }
        if found.pass == Pass::Yes {
            looking.clear();
            continue;
        }
        scores.push((index, CriticalState::new(&found), found.score, found.most));
        if found.pass == Pass::Unknown {
            search.stopped = search.stopped.or_else(|| found.flaws.first().cloned());
        }
        // From the last start on, the item is searched for every start.
        search.tried.add(index, found, index >= last);
    }
    looking.extend(waiting);
    search.is_missed = !looking.is_empty();
    let mut passed = Candidates::default();
    for (from, way) in looking.into_iter().rev() {
        while let Some((_, state, score, most)) = scores.pop_if(|(index, ..)| *index >= from) {
            passed.add_scores(state, score, most);
        }
        let (least, most) = passed.scores();
        add(&mut search.ways, from, way.after(share, least, most, missed));
    }
    search
}

/// A step, with the data for messages about it.
struct StepMessage<'s> {
    step: &'s Matcher,
    name: String,
    from: usize,
    stopped: Option<&'s Flaw>,
}

impl StepMessage<'_> {
    /// Returns the mismatch for a value that must not be present.
    fn penalty(&self) -> Flaw {
        let message = format!("{} exists but must not", self.name);
        Flaw { critical: true, ..Flaw::new(&self.step.place, message) }
    }

    /// Returns the mismatch for a step that no item meets.
    fn missed(&self, actual: Option<&Value>) -> Flaw {
        let after = if self.from == 0 { String::new() } else { format!(" after item {}", self.from - 1) };
        Flaw::new(&self.step.place, format!("{} is not met by any item{after}", self.name)).actual(actual)
    }

    /// Returns the undecided mismatch for a step that some item may meet.
    fn doubt(&self, critical: bool) -> Flaw {
        let reason = self.stopped.and_then(|flaw| flaw.message.as_deref()).unwrap_or("an item is undecided");
        let message = format!("{} is undecided: {reason}", self.name);
        Flaw { critical, undecided: true, ..Flaw::new(&self.step.place, message) }
    }
}
