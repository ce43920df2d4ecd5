//! Claims: requirements in natural language.
//!
//! A claim is compiled to typed assertions if all of it is understood: [`word`] has every word, and the table in
//! [`meaning`] has their combination. Otherwise a judge is asked. A claim that is understood only in part is never
//! checked in part: the rest might be what matters.

mod assertion;
mod content;
mod files;
mod judged;
mod meaning;
mod segment;
mod token;
mod word;

use std::sync::Arc;

use expect::SourceLocation;
use model::{Case, Diagnostic, Evidence, Need, Status};

use self::content::{FileContent, OutputContent, Texts};
use self::files::FilesClaim;
use self::judged::JudgedClaim;
use self::meaning::{FileEvent, Statement, StatementKind, understood};
use self::segment::LANGUAGES;
use crate::assertion::branch_created::BranchCreated;
use crate::assertion::command_ran::{CommandPattern, CommandRan};
use crate::assertion::commit_created::{CommitCreated, CommitNotCreated, Message};
use crate::assertion::git_clean::GitClean;
use crate::assertion::pushed::Pushed;
use crate::assertion::review_request_created::{ReviewRequestCreated, ReviewRequestNotCreated};
use crate::assertion::valid_json::ValidJson;
use crate::branch_name::BranchName;
use crate::json_source::JsonSource;
use crate::matcher::{self, Judgement, Matcher};
use crate::sandbox_file::SandboxFile;
use crate::verdict::Verdict;

pub(crate) use self::assertion::ASSERTION;

/// Properties of the case to which a claim belongs.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClaimContext {
    /// True if the skill must not be used, so that claims about branches, commits, pushes and review requests are
    /// inverted.
    pub is_turned: bool,
    /// Expected outcome in natural language.
    pub expected: Option<String>,
    /// Scripts that the skill bundles, relative to its folder.
    pub scripts: Vec<String>,
    /// True if there is certainly a sandbox, so that its files and its repository can be shown to a judge.
    pub has_files: bool,
}

impl ClaimContext {
    /// Returns the setting of `case`.
    pub fn for_case(case: Option<&Case>) -> Self {
        let Some(case) = case else { return Self::default() };
        let asked = case.skill_eval.as_ref();
        let expected = case.expected.as_ref().and_then(|expected| expected.as_str());
        Self {
            is_turned: asked.is_some_and(|asked| !asked.should_trigger),
            expected: expected.filter(|expected| !expected.trim().is_empty()).map(str::to_owned),
            scripts: asked.map(|asked| asked.scripts.clone()).unwrap_or_default(),
            has_files: asked.is_some(),
        }
    }
}

/// Compiles `text`, and returns a note for the user about the result.
pub(crate) fn compiled(
    text: &str,
    place: &SourceLocation,
    setting: &ClaimContext,
) -> (Arc<dyn Matcher>, Option<Diagnostic>) {
    let meant = understood(text);
    let is_turned = setting.is_turned && meant.iter().flatten().any(Statement::is_turnable);
    let parts =
        meant.and_then(|parts| parts.into_iter().map(|part| checked(part, place, setting)).collect::<Option<Vec<_>>>());
    if let Some(parts) = parts {
        return (Arc::new(Claim { parts, is_turned }), None);
    }
    let is_lost = setting.is_turned && meaning::seems_about_git(text);
    let warning = is_lost.then(|| {
        let problem = Diagnostic::warning("a judge decides this claim as written: it is not inverted");
        problem.at(place.excerpt()).help(
            "if `should_trigger` is false, only claims that are understood without a judge are inverted: write it as `A git \
             commit was created`, or write what must not happen",
        )
    });
    (matcher::judged(JudgedClaim::new(text, setting)), warning)
}

/// Claim that was compiled to typed assertions, all of which must hold.
#[derive(Debug)]
struct Claim {
    parts: Vec<Typed>,
    /// True if the claim is inverted, because the skill must not be used.
    is_turned: bool,
}

/// One of the typed assertions.
#[derive(Debug)]
struct Typed {
    method: &'static str,
    /// Object of the assertion, such as a file name, if there is one.
    about: Option<String>,
    matcher: Box<dyn Matcher>,
}

impl Typed {
    fn new(method: &'static str, about: Option<String>, matcher: impl Matcher + 'static) -> Self {
        Self { method, about, matcher: Box::new(matcher) }
    }
}

impl Matcher for Claim {
    fn needs(&self) -> Vec<Need> {
        self.parts.iter().flat_map(|part| part.matcher.needs()).collect()
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        let mut verdict = self.combined(evidence);
        if self.is_turned {
            verdict.reason.push_str("; inverted, because the case has `should_trigger: false`");
        }
        Ok(verdict)
    }

    fn stands_for(&self) -> Option<Vec<String>> {
        let describe = |part: &Typed| match &part.about {
            Some(about) => format!("{} {about}", part.method),
            None => part.method.to_owned(),
        };
        Some(self.parts.iter().map(describe).collect())
    }
}

impl Claim {
    /// Returns the combined verdict of all parts.
    fn combined(&self, evidence: &Evidence) -> Verdict {
        let mut verdicts: Vec<Verdict> = self.parts.iter().map(|part| part.matcher.verdict(evidence)).collect();
        if verdicts.len() == 1 {
            return verdicts.remove(0);
        }
        let lines: Vec<String> = self.parts.iter().zip(&verdicts).map(|(part, verdict)| line(part, verdict)).collect();
        let of = |status: Status| verdicts.iter().position(|verdict| verdict.status == status);
        let count = verdicts.iter().filter(|verdict| verdict.status == Status::Met).count();
        match of(Status::Unmet).or_else(|| of(Status::Undecided)) {
            Some(at) => {
                let open = verdicts.iter().find_map(|verdict| verdict.error.clone());
                let mut first = verdicts.remove(at);
                first.error = open;
                let others = lines.into_iter().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| line);
                first.evidence.extend(others);
                first
            }
            None => Verdict::met(format!("all {count} parts hold")).evidence(lines),
        }
    }
}

fn line(part: &Typed, verdict: &Verdict) -> String {
    let status = match verdict.status {
        Status::Met => "met",
        Status::Unmet => "not met",
        Status::Undecided => "undecided",
    };
    format!("{status}: {}: {}", part.method, verdict.reason)
}

/// Returns the typed assertion for a part, or `None` if there is none.
fn checked(part: Statement, place: &SourceLocation, setting: &ClaimContext) -> Option<Typed> {
    let Statement { says, is_negated } = part;
    let named = |name: &Option<String>| name.as_ref().map(|name| format!("`{name}`"));
    let branch = |name: Option<String>| name.map(|name| BranchName::Name(name, None));
    // An inverted claim forbids any such event, regardless of the name. A claim that is already negated is not
    // inverted.
    let is_turned = setting.is_turned && !is_negated;
    Some(match says {
        StatementKind::Branch { name } => {
            let name = name.filter(|_| !is_turned);
            let is_wanted = !is_turned && !is_negated;
            let method = if is_wanted { "branch_created" } else { "branch_not_created" };
            let about = named(&name);
            Typed::new(method, about, BranchCreated { name: branch(name), is_wanted, checked_out: is_wanted })
        }
        StatementKind::Commit { is_single: true, .. } if is_negated => return None,
        StatementKind::Commit { message, .. } if is_turned || (is_negated && message.is_none()) => {
            Typed::new("commit_not_created", None, CommitNotCreated)
        }
        StatementKind::Commit { .. } if is_negated => return None,
        StatementKind::Commit { message, is_single } => {
            let about = named(&message).or_else(|| is_single.then(|| "exactly once".to_owned()));
            Typed::new("commit_created", about, CommitCreated { message: message.map(Message::Text), is_single })
        }
        StatementKind::Push { name } => {
            let name = name.filter(|_| !is_turned);
            let is_wanted = !is_turned && !is_negated;
            let method = if is_wanted { "pushed" } else { "not_pushed" };
            Typed::new(method, named(&name), Pushed { name: branch(name), is_wanted })
        }
        StatementKind::Review { base, is_draft } if is_turned || (is_negated && base.is_none() && !is_draft) => {
            Typed::new("review_request_not_created", None, ReviewRequestNotCreated)
        }
        StatementKind::Review { .. } if is_negated => return None,
        StatementKind::Review { base, is_draft } => {
            let about = base.as_ref().map(|base| format!("to `{base}`"));
            let about = about.or_else(|| is_draft.then(|| "as a draft".to_owned()));
            Typed::new(
                "review_request_created",
                about,
                ReviewRequestCreated { head: None, base: branch(base), is_draft },
            )
        }
        StatementKind::Files { what, names, is_either, is_at_root } => {
            let files = FilesClaim { what, names, is_either, is_at_root, is_negated };
            Typed::new(files.method(), files.about(), files)
        }
        StatementKind::Ran { command } => {
            let method = if is_negated { "command_not_ran" } else { "command_ran" };
            let about = named(&command);
            let command = command.as_deref().map_or_else(|| Some(CommandPattern::any()), CommandPattern::line)?;
            Typed::new(method, about, CommandRan { command, is_wanted: !is_negated, place: None })
        }
        StatementKind::RanBundled { language } => {
            let script = only_script(&setting.scripts, &language)?;
            let method = if is_negated { "command_not_ran" } else { "command_ran" };
            let command = CommandPattern::line(script)?;
            let about = Some(format!("`{script}`"));
            Typed::new(method, about, CommandRan { command, is_wanted: !is_negated, place: None })
        }
        StatementKind::OutputContains { texts, is_either } => {
            let texts = Texts { texts, is_either, is_negated };
            let method = if is_negated { "output_not_contains" } else { "output_contains" };
            Typed::new(method, Some(texts.describe()), OutputContent { texts })
        }
        StatementKind::FileContains { file, texts, is_either } => {
            let texts = Texts { texts, is_either, is_negated };
            let method = if is_negated { "file_not_contains" } else { "file_contains" };
            let about = format!("`{file}` {}", texts.describe());
            Typed::new(method, Some(about), FileContent { file, texts })
        }
        StatementKind::Json { file, is_contained } => {
            let method = if is_negated { "no_valid_json" } else { "valid_json" };
            let about = named(&file);
            let file = file.map(|path| SandboxFile { path, place: place.clone() });
            let json = ValidJson { source: JsonSource { file }, is_wanted: !is_negated, is_contained };
            Typed::new(method, about, json)
        }
        StatementKind::Clean => {
            let method = if is_negated { "git_not_clean" } else { "git_clean" };
            Typed::new(method, None, GitClean { is_wanted: !is_negated })
        }
    })
}

/// Returns the script that `the bundled script` means: the only one in that language. `None` if there are several.
fn only_script<'s>(scripts: &'s [String], language: &str) -> Option<&'s str> {
    let extensions = LANGUAGES.iter().find(|(known, _)| *known == language).map(|(_, extensions)| *extensions);
    let is_meant = |script: &&String| {
        let extension = script.rsplit_once('.').map_or("", |(_, extension)| extension);
        extensions.is_none_or(|extensions| extensions.contains(&extension))
    };
    let mut meant = scripts.iter().filter(is_meant);
    let only = meant.next()?;
    meant.next().is_none().then_some(only.as_str())
}

#[cfg(test)]
mod tests;
