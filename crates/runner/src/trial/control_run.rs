//! Control runs: commands without the agent's work, which show whether a result rests on files that steer tools.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::files::Found;
use grade::Check;
use model::{ControlRun, Need, Probe, Probed};
use sandbox::{RepositoryDetail, Request, Sandbox, SandboxCopy, SandboxError};

use super::{Attempt, command};

/// Maximum size of a file that steers a tool and is copied, in bytes.
const LARGEST: u64 = 64 << 20;

/// Control runs of one attempt, for some of its checks.
pub(crate) struct ControlRuns<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) checks: &'a [Check],
}

impl ControlRuns<'_> {
    /// Runs the commands of `probes` again without the agent's work, if some of them pass and the agent left files that
    /// steer tools, and adds the results. `copy` is the tree in which they ran.
    pub(super) async fn add_to(&self, probes: &mut [Probe], sandbox: &dyn Sandbox, copy: &SandboxCopy) {
        let passes =
            |probe: &Probe, found: &Probed| self.checks.iter().any(|check| check.is_met_by(&probe.need, found));
        let passed: Vec<bool> = probes.iter().map(|probe| passes(probe, &probe.found)).collect();
        // Files that the user or an assertion names are the work itself.
        let files: Vec<String> = copy.added().iter().filter(|path| !self.is_named(path)).cloned().collect();
        let kind = sandbox::find(&self.attempt.shared.settings.sandbox.kind);
        // The files of a remote sandbox cannot be written here.
        if files.is_empty() || kind.is_none_or(|kind| kind.is_remote()) {
            return;
        }
        let Some(last) = passed.iter().rposition(|passed| *passed) else { return };
        // Later commands may depend on earlier ones.
        let commands: Vec<Need> = probes[..=last].iter().map(|probe| probe.need.clone()).collect();
        let with_files = self.results(&commands, Some((sandbox.work(), &files))).await;
        let is_open = |at: usize| passed[at] && passes(&probes[at], &with_files[at]);
        let fixture = match (0..=last).any(is_open) {
            true => Some(self.results(&commands, None).await),
            false => None,
        };
        for (at, result) in with_files.into_iter().enumerate().filter(|(at, _)| passed[*at]) {
            if let Probed::Ran { control, .. } = &mut probes[at].found {
                let fixture = fixture.as_ref().map(|results| results[at].clone());
                *control = Some(Box::new(ControlRun { files: files.clone(), with_files: result, fixture }));
            }
        }
    }

    /// Returns `true` if a message of the case or another assertion names a file. A message that contains a word such as
    /// `test` does not name a file.
    fn is_named(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_word = !name.contains(|letter: char| letter == '.' || letter.is_uppercase());
        let in_text = |text: &str| {
            if is_word {
                return false;
            }
            let is_start = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
            text.match_indices(name).any(|(at, _)| is_start(at))
        };
        let needs = self.checks.iter().flat_map(Check::needs);
        self.attempt.planned.case.messages.iter().any(|message| in_text(&message.text))
            || needs.into_iter().any(|need| matches!(need, Need::File { path: own } if own == path))
    }

    /// Returns the results of the commands in the fixture, with these files of a working directory.
    async fn results(&self, commands: &[Need], files: Option<(&Path, &[String])>) -> Vec<Probed> {
        let failed = |error: SandboxError| {
            let reason = format!("cannot make a sandbox without the agent's work: {error}");
            vec![Probed::Failed { reason }; commands.len()]
        };
        let request = Request {
            repository: RepositoryDetail::Nothing,
            faults: Vec::new(),
            canaries: Vec::new(),
            keep: false,
            ..self.attempt.request()
        };
        let control = match self.attempt.shared.factory.make(request).await {
            Ok(control) => control,
            Err(error) => return failed(error),
        };
        let results = match self.results_in(&control, commands, files).await {
            Ok(results) => results,
            Err(error) => failed(error),
        };
        // Parts that cannot be removed now are removed with the run's sandboxes.
        let _ = control.close().await;
        results
    }

    async fn results_in(
        &self,
        control: &Arc<dyn Sandbox>,
        commands: &[Need],
        files: Option<(&Path, &[String])>,
    ) -> Result<Vec<Probed>, SandboxError> {
        if let Some((from, files)) = files {
            let (from, to, files) = (from.to_owned(), control.work().to_owned(), files.to_vec());
            let copied = tokio::task::spawn_blocking(move || copy_files(&from, &to, &files)).await;
            let copied = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
            copied.map_err(|source| SandboxError::Io { doing: "copy files that steer tools".to_owned(), source })?;
        }
        let copy = control.copy().await?;
        let mut results = Vec::with_capacity(commands.len());
        for need in commands {
            let Need::Command { run, timeout_ms } = need else { continue };
            results.push(command::run(&copy, run, Duration::from_millis(*timeout_ms)).await);
        }
        let _ = copy.close().await;
        Ok(results)
    }
}

/// Copies `files` from one working directory to another. Links are replaced with the files to which they lead; those
/// that lead elsewhere are omitted.
fn copy_files(from: &Path, to: &Path, files: &[String]) -> io::Result<()> {
    for path in files {
        let Found::File(real) = ::files::find(from, Path::new(path))? else { continue };
        let place: PathBuf = to.join(path);
        fs::create_dir_all(place.parent().unwrap_or(to))?;
        fs::write(&place, ::files::read(&real, LARGEST)?)?;
        let mode = fs::metadata(&real)?.permissions().mode() & 0o777;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode | 0o600))?;
    }
    Ok(())
}
