//! The input of an adversary: the message, its tools, and the files in its sandbox.

use ignore::WalkBuilder;
use model::{Case, Skill};

use crate::chat::FileAccess;

/// Maximum number of files that an adversary looks at.
const MAX_FILES: usize = 500;
/// Maximum size of a file that it reads, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The situation to which an adversary responds.
pub(super) struct Observation<'a> {
    /// User's last message.
    pub message: &'a str,
    /// Number of earlier messages.
    pub answered: usize,
    /// The case. Only probes look at its assertions.
    pub case: &'a Case,
    /// Access to the files of the sandbox, if there is one.
    pub access: Option<&'a FileAccess>,
}

/// A file of the sandbox.
pub(super) struct SeenFile {
    /// Path relative to the working directory.
    pub path: String,
    /// Content; empty if it is large or not text.
    pub text: String,
}

impl Observation<'_> {
    /// Returns the skill or the prompt under test.
    pub fn skill(&self) -> Option<&Skill> {
        self.case.subject.skill().map(|skill| &**skill)
    }

    /// Returns the names of the tools that the case provides.
    pub fn own_tools(&self) -> Vec<&str> {
        self.case.all_tools().filter_map(|tool| tool.get("function").unwrap_or(tool).get("name")?.as_str()).collect()
    }

    /// Returns the files in the working directory, except those of repositories and installed skills, sorted by path.
    pub fn files(&self) -> Vec<SeenFile> {
        let Some(access) = self.access else { return Vec::new() };
        let mut walk = WalkBuilder::new(access.work());
        walk.standard_filters(false).follow_links(false);
        walk.filter_entry(|entry| entry.file_name() != ".git" && entry.file_name() != ".agents");
        let files = walk.build().filter_map(Result::ok);
        let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let mut seen: Vec<SeenFile> = files
            .take(MAX_FILES)
            .map(|entry| {
                let text =
                    files::read(entry.path(), MAX_FILE_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                SeenFile { path: access.shown(entry.path()), text: text.unwrap_or_default() }
            })
            .collect();
        seen.sort_by(|one, other| one.path.cmp(&other.path));
        seen
    }
}

/// Returns `text` followed by `more`, which is commented out as in scripts and most configuration files: a test may
/// run the file, and must not run the contents of a prompt or an assertion.
pub(super) fn with_comments(text: &str, more: &str) -> String {
    let comments: Vec<String> = more.lines().map(|line| format!("# {line}\n")).collect();
    format!("{text}\n{}", comments.concat())
}
