//! What a trial leaves behind. Grading is a function of it alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Budgets, Ending, OnBudget, RepositoryChange, Trace, Usage};

/// Everything grading may look at.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What the agent did.
    pub trace: Trace,
    /// What was found in the sandbox afterwards.
    pub collected: Collected,
    /// How acting ended.
    pub ending: Ending,
    /// The limits it ran under.
    pub limits: Arc<Limits>,
    /// Indices of the case's `user_responses` that nothing asked for.
    pub unused_responses: Vec<usize>,
    /// How long the agent took in this attempt, in milliseconds, by the clock that `--timeout` and `--max-duration` stop
    /// it by; absent where it was not measured.
    pub agent_ms: Option<u64>,
}

impl Evidence {
    /// What counts against the trial's budgets: this attempt, and earlier ones that were tried again because of how their
    /// agents ended.
    pub fn counted(&self) -> Usage {
        self.limits.counted(self.trace.usage)
    }

    /// How long the agent took, with earlier attempts that count, in milliseconds; absent where it was not measured.
    pub fn agent_ms(&self) -> Option<u64> {
        let earlier = self.limits.earlier.map_or(0, |earlier| earlier.duration_ms);
        self.agent_ms.map(|own| own + earlier)
    }
}

/// The limits of a trial, as they were in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The cap on model turns; 0 for none.
    pub max_turns: u64,
    /// True if somebody set that cap. One that is a default of the format stops nothing: a trial that goes over it is
    /// warned about.
    pub max_turns_set: bool,
    /// The cap on tokens of every kind together.
    pub token_budget: Option<f64>,
    /// Who set the token cap: `scenario`, `skill` or `--max-total-tokens`.
    pub token_budget_from: Option<String>,
    /// Wall clock, in milliseconds.
    pub timeout_ms: u64,
    /// Who set the wall clock: `--timeout`, `timeout` in the scenario or the project, or the built-in default.
    pub timeout_from: Option<String>,
    /// The caps beside those above.
    #[serde(skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// What becomes of a trial that is out of one, or of the tokens of `--max-total-tokens`; not told where it fails.
    #[serde(skip_serializing_if = "OnBudget::is_fail")]
    pub on_budget: OnBudget,
    /// What earlier attempts used that count against the budgets, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
}

/// What earlier attempts at a trial used that were tried again because of how their agents ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Earlier {
    /// Tokens and money, as far as they are known.
    pub usage: Usage,
    /// How long their agents took, in milliseconds.
    pub duration_ms: u64,
}

impl Limits {
    /// Whether the cap on tokens of every kind only warns: it is the command line's, and the command line says so.
    pub fn tokens_only_warn(&self) -> bool {
        self.on_budget == OnBudget::Warn && self.token_budget_from.as_deref() == Some("--max-total-tokens")
    }

    /// The number of model turns after which an agent is stopped; `None` if somebody set none.
    pub fn turn_cap(&self) -> Option<u64> {
        Some(self.max_turns).filter(|turns| self.max_turns_set && *turns > 0)
    }

    /// The number of model turns above which a trial is warned about; `None` if there is none, or a cap that stops it.
    pub fn warn_turns(&self) -> Option<u64> {
        Some(self.max_turns).filter(|turns| !self.max_turns_set && *turns > 0)
    }

    /// Whether an agent is stopped once it has used more tokens or money than it may.
    pub fn are_kept_on_the_way(&self) -> bool {
        let capped = Budgets { duration_ms: None, ..self.budgets };
        (self.token_budget.is_some() && !self.tokens_only_warn())
            || (!capped.is_empty() && !self.on_budget.only_warns())
    }

    /// What counts against the budgets, of an attempt that used `usage`: as far as it is known, with what earlier attempts
    /// used.
    pub fn counted(&self, usage: Usage) -> Usage {
        let mut sum = self.earlier.map(|earlier| earlier.usage).unwrap_or_default();
        sum += usage;
        sum
    }
}

/// What was found in the sandbox after acting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collected {
    /// Where the agent worked: absolute, links resolved. Absent when there was no sandbox.
    pub sandbox: Option<String>,
    /// The agent's home.
    pub home: Option<String>,
    /// The agent's directory for temporary files.
    pub tmp: Option<String>,
    /// Files of the working directory that are not as they were, sorted by path.
    pub files_changed: Vec<FileChange>,
    /// Paths beside the working directory that were written, where only the sandbox's own should be.
    pub outside_changes: Vec<String>,
    /// The repository, if there is one.
    pub repository: Option<Repository>,
    /// What assertions had looked at beyond that, each need once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// What assertions about a reply had looked at once it had come, before the next message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reply_probes: Vec<ReplyProbes>,
    /// What became of the repository and its remotes, where the case or an assertion needs to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_change: Option<Box<RepositoryChange>>,
    /// What the agent changed in the working directory, as a patch, where somebody wants it and git can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

impl Collected {
    /// What `need` came to, if it was looked at.
    pub fn probed(&self, need: &Need) -> Option<&Probed> {
        let key = need.key();
        self.probes.iter().find(|probe| probe.key == key).map(|probe| &probe.found)
    }

    /// The same as seen once the reply to message `number`, from 1, had come, as far as somebody looked then.
    pub fn look_back(&mut self, number: usize) {
        let then = self.reply_probes.iter().filter(|probes| probes.reply == number);
        let then: Vec<Probe> = then.flat_map(|probes| probes.probes.iter().cloned()).collect();
        self.probes.splice(0..0, then);
    }
}

/// What was looked at once a reply had come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplyProbes {
    /// The message that it answers, from 1.
    pub reply: usize,
    /// What was found, each need once.
    pub probes: Vec<Probe>,
}

/// Something an assertion must have looked at in the sandbox after the agent has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Need {
    /// A file.
    File {
        /// Relative to the working directory, with `/`.
        path: String,
    },
    /// What a shell command does in the working directory.
    Command {
        /// The command.
        run: String,
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// The repository and its remotes, before and after: [`Collected::repository_change`].
    Repository,
    /// What files there are in the working directory, and what is in the small ones.
    Files,
}

impl Need {
    /// What tells it from others, whatever is masked in it later: a digest of all of it.
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

/// A digest that is the same everywhere and always: FNV-1a, with a prime and a start of 128 bits. It keeps no secret.
pub fn digest(bytes: impl Iterator<Item = u8>) -> String {
    let digest = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |digest, byte| {
        (digest ^ u128::from(byte)).wrapping_mul((1 << 88) | 0x13b)
    });
    format!("{digest:032x}")
}

/// What was looked at for an assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// [`Need::key`] of what was asked for.
    pub key: String,
    /// What was asked for, to be shown.
    pub need: Need,
    /// What came of it.
    pub found: Probed,
}

/// What came of looking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probed {
    /// There is nothing of that name.
    Nothing,
    /// There is a directory.
    Directory,
    /// There is something that is neither a file nor a directory.
    Special,
    /// There is a file.
    File {
        /// How long it is, in bytes.
        size: u64,
        /// What is in it, as far as it was read; what is not UTF-8 is replaced.
        text: String,
        /// Whether the rest was not read.
        clipped: bool,
    },
    /// The name leads out of the working directory, so nobody looked.
    Outside,
    /// All files of the working directory but those of repositories.
    Files {
        /// The files, sorted by path.
        files: Vec<FoundFile>,
        /// Whether there are more of them.
        clipped: bool,
    },
    /// The command was run.
    Ran {
        /// Its exit code; absent when its time was over.
        exit_code: Option<i32>,
        /// What it wrote to its standard output; of too much the middle is left out.
        stdout: String,
        /// The same of its error output.
        stderr: String,
        /// Whether something was left out of either.
        clipped: bool,
    },
    /// Nobody could look.
    Failed {
        /// Why, in one line.
        because: String,
    },
}

/// A file of the working directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundFile {
    /// Relative to the working directory, with `/`; a directory with nothing in it ends with one.
    pub path: String,
    /// How long it is, in bytes.
    pub size: u64,
    /// What is in it, if it is small and UTF-8 and there is not too much of that already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the working directory, with `/`.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// Its content or kind is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// A repository's state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// `git status --porcelain`, a line each.
    pub status: Vec<String>,
    /// Commits made since the fixture: hash and subject, newest first.
    pub new_commits: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_is_found_by_its_content() {
        let file = |path: &str| Need::File { path: path.into() };
        let command = |run: &str, timeout_ms| Need::Command { run: run.into(), timeout_ms };
        let needs = [file("a"), file("b"), command("a", 1), command("a", 2), command("b", 1)];
        for (at, need) in needs.iter().enumerate() {
            assert!(needs[..at].iter().all(|other| other.key() != need.key()), "{need:?}");
        }
        let probe = Probe { key: file("a").key(), need: file("[masked]"), found: Probed::Nothing };
        let collected = Collected { probes: vec![probe], ..Collected::default() };
        assert_eq!(collected.probed(&file("a")), Some(&Probed::Nothing));
        assert_eq!(collected.probed(&file("[masked]")), None);
    }

    #[test]
    fn what_was_there_when_a_reply_had_come_goes_before_what_is_there_at_the_end() {
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
