//! The agent's changes, as a patch.

use model::{Change, Collected};

use super::inspection::View;

/// Maximum size of a patch, in bytes.
const LONGEST: usize = 1 << 20;

/// Maximum number of changed files for a patch, because their names are passed on a command line.
const MOST_FILES: usize = 1000;

/// Script that compares the working directory with a commit, using a separate index. The arguments are the commit, the
/// number of files that existed before, those files, and the new files.
const COMPARE: &str = r#"
set -e
base=$1 old=$2; shift 2
export GIT_INDEX_FILE="$GIT_DIR/compared" GIT_LITERAL_PATHSPECS=1
g read-tree "$base"
# What git has no earlier state of cannot be compared.
n=0
for path; do
  n=$((n + 1))
  [ "$n" -gt "$old" ] || printf '%s\n' "$path"
done > "$GIT_DIR/old"
g ls-files > "$GIT_DIR/known"
if [ "$old" -gt 0 ] && grep -vxFf "$GIT_DIR/known" "$GIT_DIR/old" > /dev/null; then exit 3; fi
g add -A -f -- "$@" 2> /dev/null
g diff --cached --no-ext-diff --no-textconv --no-color "$base" -- "$@"
"#;

/// Returns `true` if a patch may be possible: the repository has a commit, and some files changed.
pub(super) fn is_possible(collected: &Collected) -> bool {
    let has_base = collected.repository_change.as_ref().is_some_and(|change| change.before.head.is_some());
    has_base && (1..=MOST_FILES).contains(&collected.files_changed.len())
}

/// Returns the agent's changes since the fixtures and the skill were installed. `None` if there is no commit, if
/// nothing changed, or if a changed file is not part of any commit.
pub(super) async fn of(view: &View<'_>, collected: &Collected) -> Option<String> {
    let base = collected.repository_change.as_ref()?.before.head.clone()?;
    let (new, old): (Vec<_>, Vec<_>) = collected.files_changed.iter().partition(|file| file.change == Change::Added);
    let count = old.len().to_string();
    let paths = old.iter().chain(&new).map(|file| file.path.as_str());
    let arguments: Vec<&str> = [base.as_str(), count.as_str()].into_iter().chain(paths).collect();
    let output = view.run(COMPARE, &arguments, LONGEST).await.ok()?;
    Some(output.text()).filter(|patch| output.omitted() == 0 && !patch.is_empty())
}
