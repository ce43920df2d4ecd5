#!/usr/bin/env bash
# Finds the newest baseline of the default branch, and writes the id of its workflow run to the output run-id. Having no
# baseline is not an error.
# Environment: GITHUB_TOKEN needs the `actions: read` permission; INPUT_NAME is the name of the artifact; DEFAULT_BRANCH.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=github-api.sh
. "$(dirname "$0")/github-api.sh"

if ! artifacts=$(github_api GET "/repos/$GITHUB_REPOSITORY/actions/artifacts?per_page=100&name=$INPUT_NAME"); then
  echo "::warning title=trialrun::Could not list the artifacts, so there is no baseline. The job needs the permission actions: read."
  exit 0
fi
# A fork can have a branch and an artifact of the same names. Only runs of this repository's own branch are trusted.
run=$(jq --raw-output --arg branch "$DEFAULT_BRANCH" '
  [.artifacts[] | select(.expired | not) | select(.workflow_run.head_branch == $branch)
    | select(.workflow_run.head_repository_id == .workflow_run.repository_id)]
  | sort_by(.id) | last | .workflow_run.id // empty' <<< "$artifacts")
if [ -n "$run" ]; then
  echo "The baseline is from workflow run $run of $DEFAULT_BRANCH."
  echo "run-id=$run" >> "$GITHUB_OUTPUT"
else
  echo "There is no baseline yet: no workflow run of $DEFAULT_BRANCH has an artifact named $INPUT_NAME."
fi
