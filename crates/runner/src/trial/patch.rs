//! What an agent changed, as a patch.

use std::ffi::OsStr;
use std::time::Duration;

use model::{Change, Collected};

use crate::sandbox::Sandbox;
use crate::supervise;

/// How long git may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A longer patch is nobody's to read, in bytes.
const LONGEST: usize = 1 << 20;

/// Of more files there is no patch: their names go onto a command line.
const MOST_FILES: usize = 1000;

/// Compares the working directory with a commit, without a trace in the repository: index and objects are elsewhere. The
/// arguments are the commit, how many of the files were there before, these, and those that are new.
const COMPARE: &str = r#"
set -e
base=$1 old=$2; shift 2
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
objects=$(cd "$(git rev-parse --git-path objects)" && pwd)
mkdir "$tmp/objects"
export GIT_INDEX_FILE="$tmp/index" GIT_OBJECT_DIRECTORY="$tmp/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects"
export GIT_LITERAL_PATHSPECS=1
g() { git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=false "$@"; }
g read-tree "$base"
# What git has no earlier state of cannot be compared.
n=0
for path; do
  n=$((n + 1))
  [ "$n" -gt "$old" ] || printf '%s\n' "$path"
done > "$tmp/old"
g ls-files > "$tmp/known"
if [ "$old" -gt 0 ] && grep -vxFf "$tmp/known" "$tmp/old" > /dev/null; then exit 3; fi
g add -A -f -- "$@" 2> /dev/null
g diff --cached --no-ext-diff --no-textconv --no-color "$base" -- "$@"
"#;

/// What the agent changed since fixtures and skill were placed, if git can tell: `None` without a repository or a commit, if
/// nothing changed, and if a file was changed that is in no commit.
pub(super) async fn of(sandbox: &dyn Sandbox, collected: &Collected) -> Option<String> {
    let base = collected.repository_change.as_ref()?.before.head.clone()?;
    let files = &collected.files_changed;
    if files.is_empty() || files.len() > MOST_FILES {
        return None;
    }
    let (new, old): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.change == Change::Added);
    let count = old.len().to_string();
    let paths = old.iter().chain(&new).map(|file| file.path.as_str());
    let arguments: Vec<&OsStr> =
        ["-c", COMPARE, "patch", &base, &count].into_iter().chain(paths).map(OsStr::new).collect();
    let command = sandbox.command(OsStr::new("sh"), &arguments, &[]);
    let output = supervise::run(command, PATIENCE, LONGEST).await.ok()?;
    let is_whole = output.status.success() && !output.timed_out && output.stdout.left_out() == 0;
    Some(output.stdout.text()).filter(|patch| is_whole && !patch.is_empty())
}
