//! Evidence for a change in a case: one trial of each side, with the flipped assertions, the answers and the tool
//! calls.

use model::{Finding, Outcome, Part, Segment, Status, TrialRecord};
use serde_json::{Value, json};

use crate::align::{Row, align, divergence, is_same, side_by_side};
use crate::plain;

/// Number of unchanged lines around a change in a diff.
const AROUND: usize = 2;

/// Differences between two trials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evidence {
    /// Ids of the trials with their outcomes.
    pub(crate) trials: [(String, Outcome); 2],
    /// Assertions whose results differ.
    pub(crate) flips: Vec<Flip>,
    /// Lines of the answers; empty if they are equal.
    pub(crate) answers: Vec<Segment>,
    /// Tool calls of both trials.
    pub(crate) calls: [Vec<Call>; 2],
    /// Tool calls of both trials, aligned.
    pub(crate) rows: Vec<Row>,
    /// First row that differs.
    pub(crate) divergence: Option<usize>,
    /// Agent time in milliseconds, tokens, cost.
    pub(crate) usage: [(Option<u64>, Option<u64>, Option<f64>); 2],
}

/// An assertion whose results differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flip {
    pub(crate) name: String,
    /// Result and reason on each side; absent if the side does not have the assertion.
    pub(crate) sides: [Option<(Status, String)>; 2],
}

/// Tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: String,
}

impl Evidence {
    pub(crate) fn of(before: &TrialRecord, after: &TrialRecord) -> Self {
        let records = [before, after];
        let calls = records.map(|record| record.tool_calls.iter().map(Call::of).collect::<Vec<_>>());
        let rows = side_by_side(&align(&calls[0], &calls[1]));
        let answer = |record: &TrialRecord| record.answer.clone().unwrap_or_default();
        Self {
            trials: records.map(|record| (record.id.to_string(), record.outcome)),
            flips: flips(before, after),
            answers: line_diff(&answer(before), &answer(after)),
            divergence: divergence(&rows, &calls[0], &calls[1]),
            calls,
            rows,
            usage: records.map(|record| (record.agent_ms, record.usage.map(|usage| usage.total()), record.cost_usd)),
        }
    }

    /// Returns `true` if the calls of the row are equal.
    pub(crate) fn is_same(&self, row: Row) -> bool {
        is_same(row, &self.calls[0], &self.calls[1])
    }

    pub(crate) fn to_json(&self) -> Value {
        let side = |at: usize| {
            let ((trial, outcome), (agent_ms, tokens, cost_usd)) = (&self.trials[at], &self.usage[at]);
            json!({ "trial": trial, "outcome": outcome, "agent_ms": agent_ms, "tokens": tokens, "cost_usd": cost_usd })
        };
        let result = |side: &Option<(Status, String)>| {
            side.as_ref().map(|(status, reason)| json!({ "status": status, "because": reason }))
        };
        let flip = |flip: &Flip| json!({ "assertion": flip.name, "before": result(&flip.sides[0]), "after": result(&flip.sides[1]) });
        let call = |side: usize, at: Option<usize>| {
            at.map(|at| &self.calls[side][at]).map(|call| json!({ "name": call.name, "input": call.input }))
        };
        let row = |row: &Row| json!({ "before": call(0, row.0), "after": call(1, row.1), "same": self.is_same(*row) });
        json!({
            "before": side(0),
            "after": side(1),
            "flips": self.flips.iter().map(flip).collect::<Value>(),
            "answer_diff": self.answers,
            "tool_calls": self.rows.iter().map(row).collect::<Value>(),
            "first_divergence": self.divergence,
        })
    }
}

impl Call {
    fn of(call: &model::CallRecord) -> Self {
        let values = call.input.as_object();
        let only = values.filter(|values| values.len() == 1).and_then(|values| values.values().next()?.as_str());
        let input = match only {
            Some(only) => only.to_owned(),
            None if values.is_some_and(serde_json::Map::is_empty) || call.input.is_null() => String::new(),
            None => call.input.to_string(),
        };
        Self { name: call.name.clone(), input }
    }
}

/// Returns the assertions whose results differ, in the order of the second trial.
fn flips(before: &TrialRecord, after: &TrialRecord) -> Vec<Flip> {
    let find = |record: &TrialRecord, id: &str| record.findings.iter().find(|found| found.id == id).cloned();
    let verdict = |found: Option<&Finding>| found.map(|found| (found.status, found.reason.clone()));
    let name = |found: &Finding| found.title.clone().unwrap_or_else(|| found.id.clone());
    // A limit that was kept is not worth mentioning if the other trial does not have it.
    let counts = |found: &Finding| !(found.implicit && found.status == Status::Met);
    let mut flips = Vec::new();
    for is in &after.findings {
        let was = find(before, &is.id);
        if was.as_ref().map_or_else(|| counts(is), |was| was.status != is.status) {
            flips.push(Flip { name: name(is), sides: [verdict(was.as_ref()), verdict(Some(is))] });
        }
    }
    let gone = before.findings.iter().filter(|was| counts(was) && find(after, &was.id).is_none());
    flips.extend(gone.map(|was| Flip { name: name(was), sides: [verdict(Some(was)), None] }));
    flips
}

/// Returns the lines in which two texts differ, with a few equal lines around them. Empty if the texts are equal.
pub(crate) fn line_diff(before: &str, after: &str) -> Vec<Segment> {
    if before == after {
        return Vec::new();
    }
    let (left, right) = (plain::lines(before), plain::lines(after));
    let rows = align(&left, &right);
    let part = |row: &Row| match row {
        (Some(_), Some(_)) => Part::Same,
        (Some(_), None) => Part::Missing,
        (None, _) => Part::Extra,
    };
    let is_near = |at: usize| {
        let around = at.saturating_sub(AROUND)..rows.len().min(at + AROUND + 1);
        rows[around].iter().any(|row| part(row) != Part::Same)
    };
    let mut segments: Vec<Segment> = Vec::new();
    let mut is_cut = false;
    for (at, row) in rows.iter().enumerate() {
        if !is_near(at) {
            if !std::mem::replace(&mut is_cut, true) {
                segments.push(Segment { part: Part::Same, text: "…\n".into() });
            }
            continue;
        }
        is_cut = false;
        let line = row.0.map(|at| &left[at]).or_else(|| row.1.map(|at| &right[at]));
        let text = format!("{}\n", line.map_or("", String::as_str));
        match segments.last_mut() {
            Some(last) if last.part == part(row) => last.text.push_str(&text),
            _ => segments.push(Segment { part: part(row), text }),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use model::CallRecord;

    use super::*;

    fn call(name: &str, input: Value) -> CallRecord {
        CallRecord {
            name: name.into(),
            raw_name: name.into(),
            input,
            result: None,
            is_error: false,
            turn: 0,
            parent: None,
        }
    }

    fn finding(id: &str, status: Status, reason: &str, implicit: bool) -> Finding {
        Finding { id: id.into(), status, reason: reason.into(), implicit, ..Finding::default() }
    }

    #[test]
    fn assertions_that_flip_are_listed_with_both_reasons() {
        let of = |findings: Vec<Finding>| TrialRecord { findings, ..TrialRecord::default() };
        let before = of(vec![
            finding("a", Status::Met, "found", false),
            finding("same", Status::Unmet, "one", false),
            finding("gone", Status::Unmet, "old", false),
            finding("limit", Status::Met, "kept", true),
        ]);
        let after = of(vec![
            finding("a", Status::Unmet, "not found", false),
            finding("same", Status::Unmet, "another", false),
            finding("new", Status::Met, "is there", false),
        ]);
        let flips = Evidence::of(&before, &after).flips;
        let names: Vec<&str> = flips.iter().map(|flip| flip.name.as_str()).collect();
        assert_eq!(names, ["a", "new", "gone"]);
        assert_eq!(flips[0].sides, [Some((Status::Met, "found".into())), Some((Status::Unmet, "not found".into()))]);
        assert_eq!((&flips[1].sides[0], &flips[2].sides[1]), (&None, &None));
    }

    #[test]
    fn tool_calls_are_aligned_and_the_first_divergence_is_marked() {
        let of = |tool_calls: Vec<CallRecord>| TrialRecord { tool_calls, ..TrialRecord::default() };
        let look = || call("Bash", json!({ "command": "ls" }));
        let before = of(vec![look(), call("Read", json!({ "file_path": "a", "limit": 3 })), look()]);
        let after = of(vec![look(), call("Write", json!({})), look(), look()]);
        let evidence = Evidence::of(&before, &after);
        assert_eq!(evidence.rows, [(Some(0), Some(0)), (Some(1), Some(1)), (None, Some(2)), (Some(2), Some(3))]);
        assert_eq!(evidence.divergence, Some(1));
        let json = evidence.to_json();
        assert_eq!(json["tool_calls"][0]["before"], json!({ "name": "Bash", "input": "ls" }));
        assert_eq!(json["tool_calls"][1]["after"], json!({ "name": "Write", "input": "" }));
        assert_eq!((&json["tool_calls"][3]["same"], &json["tool_calls"][2]["before"]), (&json!(true), &json!(null)));
    }

    #[test]
    fn a_line_diff_shows_a_few_lines_around_changes() {
        let lines: Vec<String> = (1..=9).map(|n| n.to_string()).collect();
        let before = lines.join("\n");
        let drawn = |after: &str| -> String {
            let sign = |part| match part {
                Part::Same => ' ',
                Part::Missing => '-',
                Part::Extra => '+',
            };
            let segments = line_diff(&before, after);
            segments
                .iter()
                .flat_map(|segment| {
                    segment.text.lines().map(|line| format!("{}{line}", sign(segment.part))).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(drawn(&before.replace('5', "x")), " …, 3, 4,-5,+x, 6, 7, …");
        assert_eq!(drawn(&before), "");
        assert_eq!(drawn(&format!("{before}\nmore")), " …, 8, 9,+more");
    }
}
