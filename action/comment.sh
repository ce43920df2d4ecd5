#!/usr/bin/env bash
# Posts a file as a comment on a pull request, or replaces the comment from an earlier run. Its first line is a marker
# by which the comment is found again.
# Usage: comment.sh FILE. Environment: GITHUB_TOKEN needs the `pull-requests: write` permission; PULL_REQUEST is a number.
# A comment that cannot be posted is a warning, because the token of a pull request from a fork may only read.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=github-api.sh
. "$(dirname "$0")/github-api.sh"

# Prints the id of the comment with the marker, if there is one. Comments by people are not replaced, whatever they
# contain.
find_comment() { # marker
  local page=1 comments
  while [ "$page" -le 30 ]; do
    comments=$(github_api GET "/repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments?per_page=100&page=$page") || return
    jq --raw-output --arg marker "$1" 'map(select(.user.type == "Bot" and (.body | startswith($marker)))) | .[0].id // empty' <<< "$comments"
    [ "$(jq length <<< "$comments")" -eq 100 ] || return 0
    page=$((page + 1))
  done
}

post_comment() { # file
  local body id status=0
  body=$(mktemp)
  jq --raw-input --slurp '{body: .}' "$1" > "$body"
  if ! id=$(find_comment "$(head -n 1 "$1")"); then
    status=1
  elif [ -n "$id" ]; then
    github_api PATCH "/repos/$GITHUB_REPOSITORY/issues/comments/${id%%$'\n'*}" "$body" > /dev/null || status=1
  else
    github_api POST "/repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments" "$body" > /dev/null || status=1
  fi
  rm -f "$body"
  return "$status"
}

if [ -z "${GITHUB_TOKEN:-}" ]; then
  echo "There is no token, so no comment is posted."
elif ! post_comment "$1"; then
  echo "::warning title=trialrun::Could not post the comment. The job needs the permission pull-requests: write, which pull requests from forks do not get. The step summary shows the same text."
fi
