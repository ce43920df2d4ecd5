//! Restores from the record the probes that assertions need but that were not made when the trial ran: a file from the
//! recorded files, or the reason why the assertion cannot be decided.

use grade::Check;
use model::{AssertionScope, Collected, FoundFile, Need, Probe, Probed};

/// Reason why the result of a command is not known.
const NOT_RUN: &str = "it was not run during the trial, and the sandbox no longer exists";
/// Reason why the state of the sandbox after a reply is not known.
const NOT_THEN: &str = "it was not inspected after that reply";
/// Reason why the content of a file is not known.
const NOT_RECORDED: &str = "it was not inspected during the trial, and the list of files is not recorded";

/// Adds what `checks` need and `collected` lacks.
pub(super) fn complete(collected: &mut Collected, checks: &[Check]) {
    // Without a sandbox nothing was left behind; the assertions report this themselves.
    if collected.sandbox.is_none() {
        return;
    }
    for check in checks {
        for need in check.needs() {
            let key = need.key();
            let probes_at = match check.about() {
                AssertionScope::Reply(number) => {
                    collected.reply_probes.iter().position(|probes| probes.reply == number)
                }
                AssertionScope::Trial | AssertionScope::LastReply => None,
            };
            let found = match probes_at {
                Some(at) if collected.reply_probes[at].probes.iter().any(|probe| probe.key == key) => None,
                Some(_) => Some(Probed::Failed { reason: NOT_THEN.to_owned() }),
                None if collected.probed(&need).is_some() => None,
                None => recalled(&need, collected),
            };
            let Some(found) = found else { continue };
            match probes_at {
                Some(at) => collected.reply_probes[at].probes.push(Probe { key, need, found }),
                None => collected.probes.push(Probe { key, need, found }),
            }
        }
    }
}

/// Returns the result of `need`, as far as it is recorded; `None` if the assertions themselves report that it is
/// missing.
fn recalled(need: &Need, collected: &Collected) -> Option<Probed> {
    if let Some(reason) = collected.lost() {
        return Some(Probed::Lost { reason: reason.to_owned() });
    }
    let failed = |reason: &str| Some(Probed::Failed { reason: reason.to_owned() });
    match need {
        Need::Repository => None,
        Need::Command { .. } => failed(NOT_RUN),
        Need::Files => failed("they were not listed during the trial"),
        Need::File { path } => match collected.probed(&Need::Files) {
            Some(Probed::Files { files, clipped }) => Some(file(path, files, *clipped)),
            _ => failed(NOT_RECORDED),
        },
    }
}

fn file(path: &str, files: &[FoundFile], clipped: bool) -> Probed {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let path = parts.join("/");
    if parts.contains(&".git") {
        return Probed::Failed { reason: "the contents of repositories are not recorded".to_owned() };
    }
    if let Some(found) = files.iter().find(|file| file.path == path) {
        let text = found.text.clone();
        return Probed::File { size: found.size, clipped: text.is_none(), text: text.unwrap_or_default() };
    }
    let below = format!("{path}/");
    if files.iter().any(|file| file.path.starts_with(&below)) {
        return Probed::Directory;
    }
    match clipped {
        true => Probed::Failed { reason: "there were more files than were recorded".to_owned() },
        false => Probed::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: Option<&str>) -> FoundFile {
        FoundFile { path: path.into(), size: 9, text: text.map(str::to_owned) }
    }

    #[test]
    fn a_listed_file_has_its_recorded_content_and_an_unlisted_file_is_absent() {
        let files = [found("a/b.txt", Some("hi")), found("big", None), found("empty/", None)];
        let of = |path: &str| file(path, &files, false);
        assert_eq!(of("./a/b.txt"), Probed::File { size: 9, text: "hi".into(), clipped: false });
        assert_eq!(of("big"), Probed::File { size: 9, text: String::new(), clipped: true });
        assert_eq!(
            [of("a"), of("empty"), of("a/"), of("b.txt")],
            [Probed::Directory, Probed::Directory, Probed::Directory, Probed::Nothing]
        );
        assert!(matches!(of(".git/config"), Probed::Failed { .. }));
        assert!(matches!(file("b.txt", &files, true), Probed::Failed { .. }));
    }
}
