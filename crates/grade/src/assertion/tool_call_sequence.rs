//! `tool_call_sequence`: tools were called in an order, with any other calls between them.

use model::{Capture, Node, decode};

use super::CAPTURE_MAX_CHARS;
use super::prelude::*;
use crate::call_pattern::{CallPattern, missed};
use crate::pattern::RegexBudget;
use crate::reading::tool_pattern;

pub(crate) const ASSERTION: Assertion = Assertion::written("tool_call_sequence", parse)
    .reported(Reported::ToolCalls)
    .summary("The agent made a sequence of tool calls.")
    .fields(&[
        Field::required(
            "sequence",
            "list of steps, at least 1",
            "Each step has a `tool`, and can have `args_match` and `capture`, as in `tool_called`.",
        ),
        Field::optional("first_calls", "`true` or `false`", "Compare only the first call that matches each step.")
            .or("`false`"),
        CAPTURE_MAX_CHARS,
    ])
    .parameters(&[Parameter::Value("sequence")])
    .pass(
        || {
            json!({"id": "asks-before-it-commits", "type": "tool_call_sequence", "sequence": [
                {"tool": "Bash", "args_match": {"command": "^git diff --cached"}},
                {"tool": "AskUserQuestion"},
                {"tool": "Bash", "args_match": {"command": "^git commit"}}]})
        },
        || {
            EvidenceBuilder::new()
                .call("Bash", json!({"command": "git diff --cached"}))
                .call("Read", json!({"file_path": "README.md"}))
                .call("AskUserQuestion", json!({"question": "Commit?"}))
                .call("Bash", json!({"command": "git commit -m x"}))
        },
    )
    .fail(
        || {
            json!({"id": "reads-before-it-writes", "type": "tool_call_sequence", "sequence": [
                {"tool": "Read", "args_match": {"file_path": "config\\.yaml$"}},
                {"tool": "Write"}]})
        },
        || {
            EvidenceBuilder::new()
                .call("Write", json!({"file_path": "PLAN.md", "content": "…"}))
                .call("Read", json!({"file_path": "config.yaml"}))
        },
    );

#[derive(Debug)]
struct ToolCallSequence {
    steps: Vec<Step>,
    shown_chars: usize,
}

#[derive(Debug)]
struct Step {
    wanted: CallPattern,
    capture: Vec<String>,
}

/// Part of a sequence that was found: the call of each step, and the step that could not be decided.
struct Progress {
    calls: Vec<usize>,
    unknown: Option<(usize, String)>,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let steps = reading.fields.require("sequence", reading.problems);
    let shown_chars = reading.shown_chars();
    let first_calls = reading.fields.boolean("first_calls", reading.problems).unwrap_or_default();
    let steps_node = steps?;
    if let Some(tool) = steps_node.as_str() {
        let problem = steps_node.error("`sequence` must be a list, not a string");
        reading.problems.push(problem.help(format!("write `[{}]`", as_steps(tool, steps_node))));
        return None;
    }
    let written = decode::list(steps_node, "`sequence`", reading.problems)?;
    if written.is_empty() {
        reading.problems.push(steps_node.error("`sequence` must have at least one step"));
    }
    let steps: Vec<Option<Step>> = written
        .iter()
        .enumerate()
        .map(|(index, node)| {
            if let Some(problem) = tool_pattern(node, "a step of `sequence`") {
                reading.problems.push(problem.help("write `tool` with the exact name of a tool"));
                return None;
            }
            if node.as_str().is_some() {
                // Names in a row are one mistake.
                if index.checked_sub(1).and_then(|before| written[before].as_str()).is_none() {
                    let names: Vec<&str> = written[index..].iter().map_while(Node::as_str).collect();
                    let problem = node.error("a step of `sequence` must be a map, not a string");
                    reading.problems.push(problem.help(format!("write `{}`", as_steps(&names.join(", "), node))));
                }
                return None;
            }
            let mut step = reading.part(node, "a step of `sequence`")?;
            let wanted = step.call_pattern();
            let capture = step.capture();
            step.fields.finish(step.problems);
            Some(Step { wanted: wanted?, capture })
        })
        .collect();
    let steps = steps.into_iter().collect::<Option<Vec<Step>>>()?;
    if first_calls {
        return Some(Arc::new(FirstCalls { steps }));
    }
    Some(Arc::new(ToolCallSequence { steps, shown_chars }))
}

/// Returns the steps that the names of tools in `written`, which is at `node`, stand for: `Read > Edit`, `Read, Edit`.
fn as_steps(written: &str, node: &Node) -> String {
    // Code has only names in quotes.
    let is_quoted = node.source.text.get(node.span.start()..).is_some_and(|text| text.starts_with(['"', '\'', '`']));
    let quote = if is_quoted { "\"" } else { "" };
    let names = written.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '>' | '|' | '\u{2192}'));
    let names =
        names.map(|name| name.trim_end_matches(['-', '='])).filter(|name| !matches!(*name, "" | "then" | "and"));
    names.map(|name| format!("{{ tool: {quote}{name}{quote} }}")).collect::<Vec<_>>().join(", ")
}

/// Order of the first calls that match each step.
#[derive(Debug)]
struct FirstCalls {
    steps: Vec<Step>,
}

impl Matcher for FirstCalls {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let (trace, regex_budget) = (&evidence.trace, RegexBudget::new());
        let order: Vec<String> = self.steps.iter().map(|step| step.wanted.describe()).collect();
        let mut last: Option<usize> = None;
        for step in &self.steps {
            let wanted = &step.wanted;
            let mut first = None;
            for (index, traced) in trace.calls.iter().enumerate() {
                match wanted.fits_traced(trace, traced, &regex_budget) {
                    Ok(true) => first = Some(index),
                    Ok(false) => continue,
                    Err(error) => return Ok(Verdict::undecided(error).at_call(trace, index)),
                }
                break;
            }
            let Some(at) = first else {
                let actual = format!("no {}", wanted.describe());
                return Ok(Verdict::unmet(actual.clone(), order.join(" → "), actual).place(&wanted.place));
            };
            if last.is_some_and(|last| at <= last) {
                let reason = format!("the first {} is call {}, which is too early", wanted.describe(), at + 1);
                let verdict = Verdict::unmet(reason.clone(), order.join(" → "), reason);
                return Ok(verdict.place(&wanted.place).at_call(trace, at));
            }
            last = Some(at);
        }
        let first = self.steps.first().map(|step| &step.wanted.place);
        Ok(Verdict::met("the first calls are in order").place(first).at_call(trace, last))
    }
}

impl ToolCallSequence {
    /// Searches greedily. `unknown_fits` says whether a call that cannot be decided counts as a match.
    fn search(&self, evidence: &Evidence, regex_budget: &RegexBudget, unknown_fits: bool) -> Progress {
        let mut found = Progress { calls: Vec::new(), unknown: None };
        let mut cursor = 0;
        for step in &self.steps {
            let next = (cursor..evidence.trace.calls.len()).find(|&index| {
                match step.wanted.fits(&evidence.trace.calls[index].call, regex_budget) {
                    Ok(true) => true,
                    Ok(false) => false,
                    Err(error) => {
                        found.unknown.get_or_insert((index, error));
                        unknown_fits
                    }
                }
            });
            let Some(at) = next else { break };
            found.calls.push(at);
            cursor = at + 1;
        }
        found
    }
}

impl Matcher for ToolCallSequence {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let regex_budget = RegexBudget::new();
        let found = self.search(evidence, &regex_budget, false);
        let count = self.steps.len();
        if found.calls.len() == count {
            let calls: Vec<String> = found.calls.iter().map(|at| (at + 1).to_string()).collect();
            let noun = if calls.len() == 1 { "call" } else { "calls" };
            let mut verdict = Verdict::met(format!("{noun} {}", format::list(&calls)));
            verdict.captures = self.captures(evidence, &found.calls);
            let first = self.steps.first().map(|step| &step.wanted.place);
            return Ok(verdict.place(first).at_call(trace, found.calls.first().copied()));
        }
        // More matches never break a sequence. If it fails with every undecided call counted as a match, it fails.
        if let Some((at, error)) = found.unknown
            && self.search(evidence, &regex_budget, true).calls.len() == count
        {
            return Ok(Verdict::undecided(error).at_call(trace, at));
        }
        if let Some(reason) = trace.missing_calls() {
            return Ok(Verdict::undecided(reason));
        }

        let reached = found.calls.len();
        let wanted = &self.steps[reached].wanted;
        let cursor = found.calls.last().map_or(0, |at| at + 1);
        let rest: Vec<usize> = (cursor..trace.calls.len()).collect();
        let miss = wanted.nearest_miss(trace, &rest, &regex_budget);
        let after = match found.calls.last() {
            None => String::new(),
            Some(at) => format!(" after call {}, {}", at + 1, trace.calls[*at].call.summary()),
        };
        let reason = format!("step {} of {count} is missing: no {}{after}", reached + 1, wanted.describe());
        let order: Vec<String> = self.steps.iter().map(|step| step.wanted.describe()).collect();
        let steps = found.calls.iter().enumerate().map(|(step, index)| {
            format!("step {} is call {}, {}", step + 1, index + 1, trace.calls[*index].call.summary())
        });
        let earlier = (0..cursor).rev().find(|&index| {
            !found.calls.contains(&index) && wanted.fits(&trace.calls[index].call, &regex_budget) == Ok(true)
        });
        let actual = match earlier {
            Some(at) => format!("call {} would match step {}, but comes too early", at + 1, reached + 1),
            None => miss.actual.clone(),
        };
        let verdict = Verdict::unmet(reason, order.join(" → "), actual).evidence(steps);
        Ok(missed(verdict, &miss, trace))
    }
}

impl ToolCallSequence {
    fn captures(&self, evidence: &Evidence, calls: &[usize]) -> Vec<Capture> {
        let steps = self.steps.iter().zip(calls).enumerate();
        steps
            .flat_map(|(at, (step, &call))| {
                let call = &evidence.trace.calls[call].call;
                CallPattern::captures(&step.capture, call, self.shown_chars, Some(at + 1))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::{Value, json};

    use crate::check::tests::{judged, underlined};
    use crate::example::EvidenceBuilder;

    fn sequence(steps: &Value) -> Value {
        json!({"id": "a", "type": "tool_call_sequence", "sequence": steps, "capture_max_chars": 3})
    }

    fn commands(commands: &[&str]) -> EvidenceBuilder {
        commands.iter().fold(EvidenceBuilder::new(), |story, command| story.call("Bash", json!({"command": command})))
    }

    #[test]
    fn steps_may_have_other_calls_between_them_but_never_share_one() {
        let two =
            sequence(&json!([{"tool": "Bash", "capture": ["command"]}, {"tool": "Bash", "capture": ["command"]}]));
        let finding = judged(&two, &commands(&["one", "two", "three"]).evidence());
        let captures: Vec<_> = finding.captures.iter().map(|it| (it.step, it.value.as_str(), it.shown().0)).collect();
        assert_eq!(captures, [(Some(1), "one", "one"), (Some(2), "two", "two")]);
        assert_eq!(finding.reason, "calls 1 and 2");
        assert_eq!(judged(&two, &commands(&["one"]).evidence()).status, Status::Unmet);
    }

    #[test]
    fn a_missing_step_is_reported_with_found_and_early_calls() {
        let wanted = sequence(&json!([
            {"tool": "Bash", "args_match": {"command": "^two"}},
            {"tool": "Bash", "args_match": {"command": "^one"}}]));
        let finding = judged(&wanted, &commands(&["one", "two", "three"]).evidence());
        assert_eq!(
            finding.reason,
            "step 2 of 2 is missing: no `Bash` call whose `command` matches /^one/ after call 2, Bash(command=\"two\")"
        );
        assert_eq!(finding.actual.as_deref(), Some("call 1 would match step 2, but comes too early"));
        assert_eq!(finding.evidence, ["step 1 is call 2, Bash(command=\"two\")"]);
        assert_eq!(underlined(&finding), "\"^one\"");
    }

    #[test]
    fn an_undecided_call_matters_only_if_it_could_complete_the_sequence() {
        let endless = format!("{}b", "a".repeat(40));
        let story = || commands(&["x", &endless, "y"]);
        let step = |pattern: &str| json!({"tool": "Bash", "args_match": {"command": pattern}});
        let status = |steps: Value| judged(&sequence(&steps), &story().evidence()).status;
        assert_eq!(status(json!([step("x"), step("^(a+)+$"), step("y")])), Status::Undecided);
        assert_eq!(status(json!([step("x"), step("^(a+)+$"), step("z")])), Status::Unmet);
        assert_eq!(status(json!([step("x"), step("y")])), Status::Met);
    }
}
