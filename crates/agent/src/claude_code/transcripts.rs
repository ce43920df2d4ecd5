//! Files of a conversation in the user's own configuration folder, which is used when a subscription stores its
//! sign-in there. The CLI writes its transcripts to that folder. They are removed when the conversation is over, and
//! no other files are.

use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the transcripts in the configuration folder. Each working directory has its own subfolder.
const PROJECTS: &str = "projects";
/// Maximum length of a subfolder's name in characters; the CLI shortens longer names by a rule of its own.
const MAX_NAME_LEN: usize = 200;
/// Minimum length of a session id that is used to find transcripts, so that it cannot be a prefix of other files'
/// names.
const MIN_ID_LEN: usize = 32;

/// Files that a conversation leaves in `folder`; removed when dropped.
#[derive(Debug)]
pub(super) struct Transcripts {
    folder: PathBuf,
    /// Subfolder for the sandbox's working directory, which no other trial uses, if its name is known.
    project: Option<PathBuf>,
    sessions: Vec<String>,
}

/// Removes the files that conversations of a killed run in the directory `sandbox` left in `folder`.
pub(super) fn remove_leftovers(folder: &Path, sandbox: &Path) {
    let start = folder_name(sandbox) + "-";
    for project in fs::read_dir(folder.join(PROJECTS)).into_iter().flatten().flatten() {
        let is_left = project.file_name().to_string_lossy().starts_with(&start);
        if !is_left || !project.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let project = project.path();
        let files: Vec<PathBuf> =
            fs::read_dir(&project).into_iter().flatten().flatten().map(|file| file.path()).collect();
        let mut left = Transcripts { folder: folder.to_owned(), project: Some(project), sessions: Vec::new() };
        let transcripts = files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
        transcripts.filter_map(|file| file.file_stem()?.to_str()).for_each(|id| left.of_session(id));
    }
}

impl Transcripts {
    /// Tracks the files of a conversation in `work`.
    pub(super) fn new(folder: &Path, work: &Path) -> Self {
        let name = Some(folder_name(work)).filter(|name| name.len() <= MAX_NAME_LEN);
        let project = name.map(|name| folder.join(PROJECTS).join(name));
        Self { folder: folder.to_owned(), project, sessions: Vec::new() }
    }

    /// Adds the id of a session that belongs to the conversation.
    pub(super) fn of_session(&mut self, id: &str) {
        if id.len() >= MIN_ID_LEN && !self.sessions.iter().any(|known| known == id) {
            self.sessions.push(id.to_owned());
        }
    }
}

impl Drop for Transcripts {
    fn drop(&mut self) {
        if let Some(project) = &self.project {
            let _ = fs::remove_dir_all(project);
        }
        // The names of other files of a session begin with its id: `todos/ID-agent-ID.json`, `file-history/ID`.
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let entries = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !self.sessions.iter().any(|id| name.starts_with(id.as_str())) {
                continue;
            }
            let _ = match entry.file_type() {
                Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                _ => fs::remove_file(entry.path()),
            };
        }
    }
}

/// Returns the name of the folder for transcripts of sessions in `work`.
fn folder_name(work: &Path) -> String {
    work.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_pruned_sandbox_are_removed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let (id, other) = ("8b025175-f579-4381-98a7-af7a1f845b29", "11111111-f579-4381-98a7-af7a1f845b29");
        let put = |path: String| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            path
        };
        let own = [
            put(format!("projects/-tmp-trialrun-sandbox-1-00ff-work/{id}.jsonl")),
            put(format!("todos/{id}-agent-{id}.json")),
        ];
        let others = [
            put(format!("projects/-tmp-trialrun-sandbox-1-00ffe-work/{other}.jsonl")),
            put(format!("projects/-home-me-work/{other}.jsonl")),
            put(format!("todos/{other}.json")),
        ];
        remove_leftovers(dir.path(), Path::new("/tmp/trialrun-sandbox-1-00ff"));
        assert!(own.iter().all(|path| !path.exists()), "{own:?}");
        assert!(others.iter().all(|path| path.exists()), "{others:?}");
        remove_leftovers(&dir.path().join("none"), Path::new("/tmp/trialrun-sandbox-1-00ff"));
    }

    #[test]
    fn only_the_files_of_the_conversation_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let id = "8b025175-f579-4381-98a7-af7a1f845b29";
        let put = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            path
        };
        let own = [
            put(&format!("projects/-tmp-trialrun-a-1-00ff-work/{id}.jsonl")),
            put("projects/-tmp-trialrun-a-1-00ff-work/memory/MEMORY.md"),
            put(&format!("todos/{id}-agent-{id}.json")),
            put(&format!("file-history/{id}/a@v1")),
        ];
        let others = [
            put("projects/-home-me-work/11111111-f579-4381-98a7-af7a1f845b29.jsonl"),
            put("todos/11111111-f579-4381-98a7-af7a1f845b29.json"),
            put(".credentials.json"),
        ];
        let mut transcripts = Transcripts::new(dir.path(), Path::new("/tmp/trialrun-a-1-00ff/work"));
        transcripts.of_session(id);
        transcripts.of_session("1");
        drop(transcripts);
        assert!(own.iter().all(|path| !path.exists()), "{own:?}");
        assert!(others.iter().all(|path| path.exists()), "{others:?}");
    }
}
