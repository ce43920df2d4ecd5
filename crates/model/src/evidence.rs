//! Evidence that a trial leaves behind. Grading depends on nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Budgets, Consumption, Effect, Ending, FaultReport, IntegritySign, ModelTraffic, OnBudget, RepositoryChange, Trace,
    Unreported, Usage,
};

/// All the inputs of grading.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Trace of the agent.
    pub trace: Trace,
    /// State of the sandbox afterwards.
    pub collected: Collected,
    /// How the conversation ended.
    pub ending: Ending,
    /// Limits in force.
    pub limits: Arc<Limits>,
    /// Indices of the case's `user_responses` that were not used.
    pub unused_responses: Vec<usize>,
    /// Time that the agent worked in this attempt, in milliseconds, as measured for its time limits; absent if it was
    /// not measured.
    pub agent_ms: Option<u64>,
}

impl Evidence {
    /// Returns what counts against the trial's budgets: this attempt's usage, and that of earlier attempts that were
    /// retried because of how their agents ended.
    pub fn counted(&self) -> Consumption {
        let duration_ms = self.agent_ms().map(|ms| ms as f64);
        Consumption { duration_ms, ..self.limits.counted(self.trace.usage, self.trace.unreported) }
    }

    /// Returns the time that the agent took, in milliseconds, including earlier attempts that count; absent if it was
    /// not measured.
    pub fn agent_ms(&self) -> Option<u64> {
        let earlier = self.limits.earlier.map_or(0, |earlier| earlier.duration_ms);
        self.agent_ms.map(|own| own + earlier)
    }
}

/// Limits in force for a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Cap on model turns; 0 for none.
    pub max_turns: u64,
    /// True if that cap was set explicitly. A default of the format does not stop the agent: a trial that exceeds it
    /// gets a warning.
    pub max_turns_set: bool,
    /// Cap on tokens of every kind together.
    pub token_budget: Option<f64>,
    /// Origin of the token limit: `scenario`, `skill`, `project`, or the name of the option or variable.
    pub token_budget_from: Option<String>,
    /// Wall-clock timeout in milliseconds.
    pub timeout_ms: u64,
    /// Origin of the timeout: an option or variable, `timeout` in the scenario or the project, or the built-in
    /// default.
    pub timeout_from: Option<String>,
    /// Further caps.
    #[serde(skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// What happens to a trial that exceeds a budget or the run's token limit; omitted if it fails.
    #[serde(skip_serializing_if = "OnBudget::is_fail")]
    pub on_budget: OnBudget,
    /// True if the agent pays for no model: a script answers, or it has no model. A cost that is not reported is then
    /// 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub costs_nothing: bool,
    /// Usage of earlier attempts that also counts against the budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
}

/// Usage of earlier attempts that were retried because of how their agents ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Earlier {
    /// Tokens and cost, as far as they are known.
    pub usage: Usage,
    /// Figures that an attempt did not report.
    pub unreported: Unreported,
    /// Time that their agents took, in milliseconds.
    pub duration_ms: u64,
}

impl Limits {
    /// Returns `true` if exceeding the cap on all tokens only causes a warning: the run set it, and its budgets only
    /// warn.
    pub fn tokens_only_warn(&self) -> bool {
        let of_others = ["scenario", "skill", "project"];
        let is_the_runs = self.token_budget_from.as_deref().is_some_and(|from| !of_others.contains(&from));
        self.on_budget == OnBudget::Warn && is_the_runs
    }

    /// Returns the number of model turns after which the agent is stopped; `None` if no cap was set explicitly.
    pub fn turn_cap(&self) -> Option<u64> {
        Some(self.max_turns).filter(|turns| self.max_turns_set && *turns > 0)
    }

    /// Returns the number of model turns above which a trial gets a warning; `None` if there is none, or if a cap
    /// stops the agent.
    pub fn warn_turns(&self) -> Option<u64> {
        Some(self.max_turns).filter(|turns| !self.max_turns_set && *turns > 0)
    }

    /// Returns `true` if an agent is stopped once it exceeds its tokens or cost.
    pub fn enforced_during_turn(&self) -> bool {
        let capped = Budgets { duration_ms: None, ..self.budgets };
        (self.token_budget.is_some() && !self.tokens_only_warn())
            || (!capped.is_empty() && !self.on_budget.only_warns())
    }

    /// Returns what counts against the budgets for an attempt that used `usage`, including earlier attempts.
    pub fn counted(&self, usage: Usage, mut unreported: Unreported) -> Consumption {
        let mut sum = Usage::default();
        if let Some(earlier) = self.earlier {
            sum = earlier.usage;
            unreported |= earlier.unreported;
        }
        sum += usage;
        if self.costs_nothing && sum.cost_usd.is_none() {
            (sum.cost_usd, unreported.cost) = (Some(0.0), false);
        }
        Consumption { usage: sum, unreported, duration_ms: None }
    }
}

/// State of the sandbox after the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// Absolute path of the working directory with links resolved; absent if there was no sandbox.
    pub sandbox: Option<String>,
    /// Home directory of the agent.
    pub home: Option<String>,
    /// Agent's directory for temporary files.
    pub tmp: Option<String>,
    /// Changed files in the working directory, sorted by path.
    pub files_changed: Vec<FileChange>,
    /// Unexpected paths in the sandbox's base folder, which should contain only the sandbox's own directories.
    pub outside_changes: Vec<String>,
    /// State of the repository, if there is one.
    pub repository: Option<Repository>,
    /// Further probes that assertions requested, one for each [`Need`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// Probes that assertions about a reply requested. They are taken after that reply and before the next message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reply_probes: Vec<ReplyProbes>,
    /// Changes to the repository and its remotes, if the case or an assertion needs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_change: Option<Box<RepositoryChange>>,
    /// Network policy that was in force while attempted connections were recorded; absent if none were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Signs of tampering that only the sandbox and the run can show. Grading adds those that follow from other
    /// evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub integrity: Vec<IntegritySign>,
    /// Changed files that steer tools, and that are no signs of tampering: the case names them, or its commands fail with
    /// them alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub harmless: Vec<String>,
    /// Ids of tool calls that no model requested, although all requests to the model were seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forged_calls: Vec<String>,
    /// Positions of replies with text that no model wrote, although all answers of the model were seen; from 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forged_replies: Vec<usize>,
    /// Faults of the case, and what became of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultReport>,
    /// Traffic between the agent and its model; absent if the gateway did not observe it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_traffic: Option<Box<ModelTraffic>>,
    /// Agent's changes to the working directory as a patch, if it is requested and git can produce it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

impl Collected {
    /// Renames the tool calls in `trace` that no model requested, and removes the replies that no model wrote. The calls
    /// remain visible under another name, and no assertion about tools, commands or answers matches any of them. The
    /// replies remain in the steps.
    pub fn withdraw_forged(&self, trace: &mut Trace) {
        for position in &self.forged_replies {
            if let Some(reply) = trace.replies.get_mut(*position) {
                (reply.answer, reply.result) = (None, None);
            }
            if position + 1 == trace.replies.len() {
                (trace.answer, trace.result) = (None, None);
            }
        }
        for traced in trace.calls.iter_mut().filter(|traced| self.forged_calls.contains(&traced.call.id)) {
            traced.call.name = format!("{} (forged)", traced.call.name);
            traced.call.effect = Effect::Other;
            traced.call.touches.clear();
        }
    }

    /// Returns the result of the probe for `need`, if there was one.
    pub fn probed(&self, need: &Need) -> Option<&Probed> {
        let key = need.key();
        self.probes.iter().find(|probe| probe.key == key).map(|probe| &probe.found)
    }

    /// Returns the reason if the agent itself left nothing to examine at the end of the conversation.
    pub fn lost(&self) -> Option<&str> {
        self.probes.iter().find_map(|probe| match &probe.found {
            Probed::Lost { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Puts the probes taken after the reply to message `number` (from 1) before those taken at the end.
    pub fn look_back(&mut self, number: usize) {
        let then = self.reply_probes.iter().filter(|probes| probes.reply == number);
        let then: Vec<Probe> = then.flat_map(|probes| probes.probes.iter().cloned()).collect();
        self.probes.splice(0..0, then);
    }
}

/// Probes taken after one reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplyProbes {
    /// Number of the message that the reply answers, from 1.
    pub reply: usize,
    /// Probes, one for each need.
    pub probes: Vec<Probe>,
}

/// Information about the sandbox that an assertion needs after the agent has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Need {
    /// A file.
    File {
        /// Path relative to the working directory, with `/`.
        path: String,
    },
    /// Result of a shell command in the working directory.
    Command {
        /// Command line.
        run: String,
        /// Timeout in milliseconds.
        timeout_ms: u64,
    },
    /// The repository and its remotes, before and after: [`Collected::repository_change`].
    Repository,
    /// List of the files in the working directory, with the contents of small ones.
    Files,
}

impl Need {
    /// Returns a digest of the whole need, which identifies it even if parts of it are masked later.
    pub fn key(&self) -> String {
        let (kind, text, number) = match self {
            Self::File { path } => ("file", path.as_str(), 0),
            Self::Command { run, timeout_ms } => ("command", run.as_str(), *timeout_ms),
            Self::Repository => ("repository", "", 0),
            Self::Files => ("files", "", 0),
        };
        digest(kind.bytes().chain([0]).chain(number.to_le_bytes()).chain(text.bytes()))
    }
}

/// Returns a digest that is the same on every machine: 128-bit FNV-1a. It is not suitable for secrets.
pub fn digest(bytes: impl Iterator<Item = u8>) -> String {
    let digest = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |digest, byte| {
        (digest ^ u128::from(byte)).wrapping_mul((1 << 88) | 0x13b)
    });
    format!("{digest:032x}")
}

/// Probe of the sandbox for an assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// [`Need::key`] of the need.
    pub key: String,
    /// Need, for display.
    pub need: Need,
    /// Result.
    pub found: Probed,
}

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probed {
    /// The path does not exist.
    Nothing,
    /// The path is a directory.
    Directory,
    /// The path is neither a file nor a directory.
    Special,
    /// The path is a file.
    File {
        /// Size in bytes.
        size: u64,
        /// Content, as far as it was read; invalid UTF-8 is replaced.
        text: String,
        /// True if the rest was not read.
        clipped: bool,
    },
    /// The path points outside the working directory and was not read.
    Outside,
    /// All files in the working directory except those of repositories.
    Files {
        /// Files, sorted by path.
        files: Vec<FoundFile>,
        /// True if there are more files.
        clipped: bool,
    },
    /// The command was run.
    Ran {
        /// Exit code; absent if the command timed out.
        exit_code: Option<i32>,
        /// Stdout; the middle is omitted if it is too long.
        stdout: String,
        /// Stderr; the middle is omitted if it is too long.
        stderr: String,
        /// True if part of either was omitted.
        clipped: bool,
        /// Files that the agent had changed and that were restored for the command, because they steer tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        restored: Vec<String>,
        /// Tests and scripts of the command that were changed while it ran.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited: Vec<String>,
        /// Results without the agent's work, if the agent left files that steer tools and the command passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        control: Option<Box<ControlRun>>,
        /// Result with the fixture's versions of scripts, if the agent changed some that the command runs and the command
        /// passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scripts: Option<Box<Rerun>>,
        /// Result with the agent's new tests and without its other work, if the command passed and so ends as it does with
        /// all of it, but otherwise on the fixture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_tests: Option<Box<Rerun>>,
        /// Result with a test that must fail, if the command passes with it although it runs the test, and the agent's files
        /// that may be the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failing_test: Option<Box<Rerun>>,
        /// Files that the command wrote into the folder for rewards, if the case has one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rewards: Vec<RewardFile>,
        /// Result with the case's own solution in place of the agent's work, if the command did not pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        solution: Option<Box<Rerun>>,
        /// Name of the program that the command begins with, if the shell did not find it on the `PATH`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_program: Option<String>,
    },
    /// The agent left nothing to examine: it removed, replaced or closed its working directory, for example.
    Lost {
        /// Description of the agent's action, in one line.
        #[serde(rename = "because")]
        reason: String,
    },
    /// The probe failed, but not because of the agent.
    Failed {
        /// Reason in one line.
        #[serde(rename = "because")]
        reason: String,
    },
}

/// Results of a command without the agent's work. They show whether a result rests on files that steer tools, such as
/// test runners, by being there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRun {
    /// The agent's files that steer tools, relative to the working directory.
    pub files: Vec<String>,
    /// Result in the fixture with these files.
    pub with_files: Probed,
    /// Result in the fixture alone; absent if the command did not pass with the files either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixture: Option<Probed>,
}

/// Result of a command that was run again with other files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rerun {
    /// The files that matter, relative to the working directory.
    pub files: Vec<String>,
    /// Result of the command.
    pub found: Probed,
}

/// File with rewards that a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewardFile {
    /// Name.
    pub name: String,
    /// Content. Empty if the file does not count.
    pub text: String,
    /// Reason why it does not count, if it could not be read as a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// File in the working directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundFile {
    /// Path relative to the working directory, with `/`; an empty directory ends with `/`.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Content, if the file is small and UTF-8 and the total limit is not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the working directory, with `/`.
    pub path: String,
    /// Kind of change.
    pub change: Change,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The file is new.
    Added,
    /// Its content or type changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

/// State of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// Commit that is checked out.
    pub head: Option<String>,
    /// Branch that is checked out.
    pub branch: Option<String>,
    /// Lines of `git status --porcelain`.
    pub status: Vec<String>,
    /// Commits made since the fixture, as hash and subject, newest first.
    pub new_commits: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_found_by_their_content() {
        let file = |path: &str| Need::File { path: path.into() };
        let command = |run: &str, timeout_ms| Need::Command { run: run.into(), timeout_ms };
        let needs = [file("a"), file("b"), command("a", 1), command("a", 2), command("b", 1)];
        for (index, need) in needs.iter().enumerate() {
            assert!(needs[..index].iter().all(|other| other.key() != need.key()), "{need:?}");
        }
        let probe = Probe { key: file("a").key(), need: file("[masked]"), found: Probed::Nothing };
        let collected = Collected { probes: vec![probe], ..Collected::default() };
        assert_eq!(collected.probed(&file("a")), Some(&Probed::Nothing));
        assert_eq!(collected.probed(&file("[masked]")), None);
    }

    #[test]
    fn probes_after_a_reply_take_precedence_over_final_probes() {
        let need = Need::File { path: "a".into() };
        let probe = |found| Probe { key: need.key(), need: need.clone(), found };
        let mut collected = Collected {
            probes: vec![probe(Probed::Nothing)],
            reply_probes: vec![ReplyProbes { reply: 1, probes: vec![probe(Probed::Directory)] }],
            ..Collected::default()
        };
        collected.look_back(2);
        assert_eq!(collected.probed(&need), Some(&Probed::Nothing));
        collected.look_back(1);
        assert_eq!(collected.probed(&need), Some(&Probed::Directory));
    }
}
