//! Checks of commands that run in the grading tree.

use model::decode::Problems;
use model::{Evidence, Need, Node, Probed, Status};
use serde_json::Value;

use super::{Held, Text, flag, items, text, whole};
use crate::assertion::command::Command;
use crate::matcher::Matcher;

/// Command that must end with an exit code, and conditions on what it prints.
#[derive(Debug)]
pub(super) struct CommandCheck {
    command: Command,
    /// Name of a program of the machine that it runs. If the program is missing, the agent is not the reason.
    program: Option<String>,
    /// Conditions, with `true` for those on stderr.
    texts: Vec<(Text, bool)>,
    /// True if a map with `passed` and `score` on stdout is its result.
    prints_result: bool,
}

impl CommandCheck {
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let exit_code = i32::try_from(whole(node, "exit_code").unwrap_or(0)).ok()?;
        let command = Command::of_run(text(node, "run")?, exit_code, whole(node, "timeout_ms")?);
        let program = text(node, "program").map(str::to_owned);
        let list = items(node.get("texts"));
        let read = |item: &Node| Some((Text::read(item, problems)?, text(item, "of") == Some("stderr")));
        let texts: Vec<(Text, bool)> = list.iter().filter_map(read).collect();
        (texts.len() == list.len()).then(|| Self { command, program, texts, prints_result: flag(node, "result") })
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        self.command.needs()
    }

    pub(super) fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        self.command.is_met_by(need, found) && self.printed(found).is_ok_and(|held| held.holds)
    }

    pub(super) fn test(&self, evidence: &Evidence) -> Result<Held, String> {
        let verdict = self.command.verdict(evidence);
        let found = self.needs().first().and_then(|need| evidence.collected.probed(need));
        match (verdict.status, &self.program, found) {
            (Status::Unmet, Some(program), Some(Probed::Ran { exit_code: Some(126 | 127), .. })) => {
                Err(format!("`{program}`, or a program that it runs, cannot be run here"))
            }
            (Status::Undecided, ..) => Err(verdict.reason),
            (Status::Unmet, ..) => Ok(Held::plain(false, verdict.reason)),
            (Status::Met, ..) => self.printed(found.ok_or("the command was not run")?),
        }
    }

    /// Tests what the command printed.
    fn printed(&self, found: &Probed) -> Result<Held, String> {
        let Probed::Ran { stdout, stderr, clipped, .. } = found else {
            return Err("the command was not run".to_owned());
        };
        for (text, is_stderr) in &self.texts {
            let (name, printed) = if *is_stderr { ("stderr", stderr) } else { ("stdout", stdout) };
            let is_in = text.is_in(printed)?;
            if !is_in && *clipped {
                return Err("the output of the command is too long".to_owned());
            }
            if is_in != text.is_wanted {
                return Ok(Held::plain(false, format!("{name} {}", text.says(is_in))));
            }
        }
        if !self.prints_result || stdout.trim().is_empty() {
            return Ok(Held::plain(true, "the command succeeded"));
        }
        let result: Value = serde_json::from_str(stdout.trim()).map_err(|_| "the program printed no result in JSON")?;
        let holds = result.get("passed").and_then(Value::as_bool).ok_or("the result of the program has no `passed`")?;
        let score = result.get("score").and_then(Value::as_f64);
        let score = score.unwrap_or(if holds { 1.0 } else { 0.0 }).clamp(0.0, 1.0);
        let said = result.get("evidence").and_then(Value::as_str).unwrap_or("the program returned a result");
        Ok(Held { holds, score, reason: said.to_owned() })
    }
}
