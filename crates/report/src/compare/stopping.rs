//! Decisions of the compared runs about the number of trials.

use std::collections::BTreeMap;

use model::{DecisionRecord, RunRow};
use serde_json::{Value, json};

use crate::decisions::{answer, has_arms, name, passed, required, sentence};
use crate::format::{number, range};
use crate::terminal::Paint;
use crate::terminal::grid::Grid;

/// Maximum number of cases in the table.
const ROWS: usize = 50;

/// Explains the intervals of several cases.
pub(super) const ROUNDS: &str = "For several cases, it uses equally many trials of each.";

/// Decisions of both runs; those of the first are empty if parts of one run are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Decisions([Vec<DecisionRecord>; 2]);

impl Decisions {
    pub(super) fn new(before: &[DecisionRecord], after: &[DecisionRecord]) -> Self {
        Self([before.to_vec(), after.to_vec()])
    }

    /// Returns a sentence for each comparison of two arms.
    pub(super) fn sentences(&self, sides: Option<[&str; 2]>) -> Vec<String> {
        let side = |(index, decisions): (usize, &Vec<DecisionRecord>)| {
            let about = sides.map_or_else(String::new, |sides| format!("{}: ", sides[index]));
            let compared = decisions.iter().filter(|decision| decision.versus.is_some());
            compared.map(|decision| format!("{about}{}", sentence(decision))).collect::<Vec<_>>()
        };
        self.0.iter().enumerate().flat_map(side).collect()
    }

    /// Returns the decisions about cases as rows of text, below a row of headings.
    pub(super) fn rows(&self, sides: [&str; 2], paint: &Paint) -> Vec<[String; 6]> {
        let has_arms = self.0.iter().any(|decisions| has_arms(decisions));
        let mut cases: BTreeMap<String, [Option<&DecisionRecord>; 2]> = BTreeMap::new();
        for (side, decisions) in self.0.iter().enumerate() {
            for decision in decisions.iter().filter(|decision| decision.versus.is_none()) {
                cases.entry(name(decision, has_arms)).or_default()[side] = Some(decision);
            }
        }
        let row = |(name, [before, after]): (String, [Option<&DecisionRecord>; 2])| {
            let required = match [before, after].map(|decision| decision.map(required)) {
                [Some(was), Some(is)] if was != is => format!("{was} {} {is}", paint.symbols().arrow),
                [was, is] => is.or(was).unwrap_or_default(),
            };
            let result = |decision: Option<&DecisionRecord>| {
                decision.map_or_else(String::new, |one| format!("{}, {}", answer(one), passed(one)))
            };
            let interval = |decision: Option<&DecisionRecord>| {
                decision.map_or_else(String::new, |one| range(one.confidence_sequence))
            };
            [name, required, result(before), interval(before), result(after), interval(after)]
        };
        if cases.is_empty() {
            return Vec::new();
        }
        let [before, after] = sides.map(str::to_owned);
        let heads = ["pass rate".into(), "required".into(), before, "95%".into(), after, "95%".into()];
        let more = cases.len().saturating_sub(ROWS);
        let mut rows: Vec<[String; 6]> = std::iter::once(heads).chain(cases.into_iter().take(ROWS).map(row)).collect();
        if more > 0 {
            let note = format!("and {} more; the JSON format has all", number(more as u64));
            rows.push([note, String::new(), String::new(), String::new(), String::new(), String::new()]);
        }
        rows
    }

    /// Returns the table for the terminal. It begins with an empty line, unless there is nothing to show.
    pub(super) fn draw(&self, sides: [&str; 2], paint: &Paint) -> String {
        let mut rows = self.rows(sides, paint).into_iter();
        let Some(heads) = rows.next() else { return String::new() };
        let heads = heads.map(|head| paint.folded(&head, 24));
        let columns: Vec<(&str, u8)> = heads.iter().map(String::as_str).zip([0, 3, 0, 2, 0, 1]).collect();
        let mut grid = Grid::new(&columns).left(2);
        rows.for_each(|row| grid.row(row.map(|cell| paint.folded(&cell, 44).into())));
        format!("\n{}", grid.draw(paint))
    }

    /// Returns all decisions, each with the id of its run.
    pub(super) fn to_json(&self, runs: Option<&[RunRow; 2]>) -> Value {
        let of_run = |(side, decisions): (usize, &Vec<DecisionRecord>)| {
            let run = runs.map(|runs| runs[side].id.clone());
            decisions.iter().map(|one| with_run(json!(one), run.as_ref())).collect::<Vec<_>>()
        };
        self.0.iter().enumerate().flat_map(of_run).collect()
    }
}

fn with_run(mut decision: Value, run: Option<&String>) -> Value {
    decision["run"] = json!(run);
    decision
}
