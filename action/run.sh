#!/usr/bin/env bash
# Checks and runs the tests, compares the run with the baseline, and writes the reports, the annotations, the step summary
# and the comment for the pull request. Gates do not fail this script: it writes `exit-code`, so that the steps that
# publish the reports run before the job fails.
# Environment: the inputs as INPUT_NAME, see action.yml; TRIALRUN_BASELINE is the directory of the baseline, which may be
# missing, TRIALRUN_BASELINE_RUN the workflow run that it is from, and TRIALRUN_DEFAULT_BRANCH a name. Works with Bash 3.2, the version of macOS.
set -euo pipefail
# GitHub reads commands from both streams. One stream keeps them in order.
exec 2>&1

case $INPUT_NAME in
  '' | .* | *[!A-Za-z0-9._-]*) echo "::error title=trialrun::The input name may contain letters, digits, -, _ and ."; exit 1 ;;
esac
out=$RUNNER_TEMP/trialrun/$INPUT_NAME
reports=$out/reports
record=(--state "$out/record")
rm -rf "$out"
mkdir -p "$reports" "$out/baseline"

# Runs a command while GitHub ignores workflow commands: parts of the output come from agents.
without_commands() {
  local code=0 token
  token=$(od -An -N 16 -t x1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$token"
  "$@" || code=$?
  echo "::$token::"
  return "$code"
}

# Reads one argument from each line of a text into the array `arguments`.
split() {
  local line
  arguments=()
  while IFS= read -r line; do
    [ -z "$line" ] || arguments+=("$line")
  done <<< "$1"
}

# Prints a file as text in Markdown, at most 20,000 characters.
preformatted() {
  echo "<pre>"
  head -c 20000 "$1" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g'
  printf '\n</pre>\n'
}

split "${INPUT_TESTS:-}"
tests=(${arguments[@]+"${arguments[@]}"})
split "${INPUT_ARGUMENTS:-}"
options=(--no-github --label "${INPUT_LABEL:-$GITHUB_REF_NAME}")
option() { # option, value
  [ -z "$2" ] || options+=("$1" "$2")
}
option --trials "${INPUT_TRIALS:-}"
option --min-pass-rate "${INPUT_MIN_PASS_RATE:-}"
option --max-cost "${INPUT_MAX_COST:-}"
option --max-run-cost "${INPUT_MAX_RUN_COST:-}"
option --max-run-tokens "${INPUT_MAX_RUN_TOKENS:-}"
[ "${INPUT_FAIL_ON_FAILURE:-true}" = true ] || options+=(--no-fail-on-assertions)
for report in terminal "junit=$reports/junit.xml" "json=$reports/report.json" "markdown=$reports/report.md" "html=$reports/report.html"; do
  options+=(--report "$report")
done

# Check

strict=()
[ "${INPUT_STRICT:-true}" != true ] || strict=(--strict)
check() {
  trialrun check "${record[@]}" ${strict[@]+"${strict[@]}"} ${tests[@]+"${tests[@]}"} "$@"
}
code=0
check --format sarif > "$reports/check.sarif" || true
check > "$out/check" 2>&1 || code=$?
without_commands cat "$out/check"
# Annotations at the lines with problems, if they prevent the run.
if [ "$code" != 0 ]; then
  jq --raw-output '
    def text: gsub("%"; "%25") | gsub("\r"; "%0D") | gsub("\n"; "%0A");
    def property: text | gsub(":"; "%3A") | gsub(","; "%2C");
    .runs[].results[] | .locations[0].physicalLocation as $place
    | "::\(.level) file=\($place.artifactLocation.uri | gsub("%20"; " ") | property),line=\($place.region.startLine // 1),title=trialrun::\(.message.text | text)"
  ' "$reports/check.sarif" || true
fi

# Run

run=
if [ "$code" = 0 ]; then
  for argument in ${arguments[@]+"${arguments[@]}"}; do
    case ${argument%%=*} in
      -*' '*) echo "::warning title=trialrun::\`$argument\` is one argument; write an option and its value on two lines." ;;
    esac
  done
  run_tests() {
    trialrun run "${record[@]}" "${options[@]}" ${arguments[@]+"${arguments[@]}"} ${tests[@]+"${tests[@]}"} 2>&1 | tee "$out/ran"
  }
  without_commands run_tests || code=$?
  if [ -s "$reports/report.json" ]; then
    run=$(jq --raw-output .run.id "$reports/report.json")
  fi
fi
if [ -n "$run" ]; then
  trialrun export "${record[@]}" "$run" "$reports/run.trialrun"
  cp "$reports/run.trialrun" "$out/baseline/"
  echo "$run" > "$out/baseline/run-id"
  # The annotations. This script writes its own step summary.
  env -u GITHUB_STEP_SUMMARY trialrun report "${record[@]}" "$run" --format github
fi

# Compare

regression=false
incomparable=false
partial=false
compare() { # file for the reason if there is nothing to compare
  local base code=0 any=()
  if [ ! -f "${TRIALRUN_BASELINE:-}/run.trialrun" ]; then
    echo "the artifact of workflow run $TRIALRUN_BASELINE_RUN could not be downloaded" > "$1"
    return 1
  fi
  base=$(cat "$TRIALRUN_BASELINE/run-id" 2> "$1") || return 1
  trialrun import "${record[@]}" "$TRIALRUN_BASELINE/run.trialrun" > "$1" 2>&1 || return 1
  trialrun compare "${record[@]}" "$base" "$run" --format json > "$reports/compare.json" 2> "$1" || true
  [ "${INPUT_FAIL_ON_REGRESSION:-true}" != any ] || any=(--any)
  trialrun compare "${record[@]}" "$base" "$run" ${any[@]+"${any[@]}"} --format markdown > "$reports/compare.md" 2> "$1" || code=$?
  case $code in
    0) ;;
    1) regression=true ;;
    3) partial=true ;; # a case, or every case, has no result to compare; the comparison says which
    *) return 1 ;;
  esac
}
if [ -n "$run" ] && { [ -n "${TRIALRUN_BASELINE_RUN:-}" ] || [ -f "${TRIALRUN_BASELINE:-}/run.trialrun" ]; }; then
  if ! compare "$out/incomparable"; then
    incomparable=true
    echo "::warning title=trialrun::Could not compare the run with the baseline."
    without_commands cat "$out/incomparable"
    {
      printf 'The run could not be compared with the baseline. The next run of the default branch replaces the baseline.\n\n'
      preformatted "$out/incomparable"
    } > "$reports/compare.md"
  fi
fi

# Gates

gate=$code
case $code in
  0) result="Passed." ;;
  1) result="Failed: the agent did not meet the expectations." ;;
  2) result="Failed: the tests or the settings are invalid, and nothing ran." ;;
  3)
    result="Incomplete: trials were broken or undecided. They say nothing about the agent."
    [ "${INPUT_FAIL_ON_INCOMPLETE:-true}" = true ] || gate=0
    ;;
  4) result="Failed: no trial was run whose result counts." ;;
  *) result="Failed: trialrun ended with exit code $code." ;;
esac
if [ "$regression" = true ]; then
  result="$result The run is worse than the baseline."
  if [ "${INPUT_FAIL_ON_REGRESSION:-true}" != false ] && [ "$gate" = 0 ]; then
    gate=1
    result="Failed: the run is worse than the baseline."
  fi
fi

if [ "$partial" = true ]; then
  result="$result The comparison with the baseline lacks results."
  if [ "${INPUT_FAIL_ON_REGRESSION:-true}" != false ] && [ "${INPUT_FAIL_ON_INCOMPLETE:-true}" = true ] && [ "$gate" = 0 ]; then
    gate=3
    result="Incomplete: the comparison with the baseline lacks results."
  fi
fi

if [ "$incomparable" = true ]; then
  result="$result The run could not be compared with the baseline."
  if [ "${INPUT_FAIL_ON_REGRESSION:-true}" != false ] && [ "$gate" = 0 ]; then
    gate=1
    result="Failed: the run could not be compared with the baseline."
  fi
fi

# Step summary and comment

link="${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY/actions/runs/${GITHUB_RUN_ID:-0}"
page() { # file with the comparison, file with the details of the run
  echo "<!-- trialrun: $INPUT_NAME -->"
  printf '## %s\n\n**%s**\n\n' "$INPUT_NAME" "$result"
  if [ -n "$run" ]; then
    printf '### Compared with the baseline\n\n'
    cat "$1"
    printf '\n'
    cat "$2"
  elif [ -s "$out/ran" ]; then
    preformatted "$out/ran"
  elif [ -s "$out/check" ]; then
    preformatted "$out/check"
  fi
  printf '\n[Reports and log](%s)\n' "$link"
}
comparison=$reports/compare.md
if [ ! -s "$comparison" ]; then
  comparison=$out/no-comparison
  next="The next run of the default branch"
  case ${GITHUB_EVENT_NAME:-} in
    pull_request | pull_request_target) ;;
    *) [ "${GITHUB_REF:-}" != "refs/heads/${TRIALRUN_DEFAULT_BRANCH:-}" ] || next="This run" ;;
  esac
  echo "There is no baseline yet. $next becomes the baseline." > "$comparison"
fi
page "$comparison" "$reports/report.md" > "$out/summary.md"
cat "$out/summary.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
# GitHub accepts comments of at most 65,536 characters.
fits() {
  [ "$(wc -c < "$out/comment.md")" -le 65000 ]
}
echo "The details are too long for a comment. The [step summary]($link) shows them." > "$out/too-long"
cp "$out/summary.md" "$out/comment.md"
fits || page "$comparison" "$out/too-long" > "$out/comment.md"
fits || page "$out/too-long" /dev/null > "$out/comment.md"

{
  echo "exit-code=$gate"
  echo "result=$result"
  echo "regression=$regression"
  echo "run-id=$run"
  echo "reports=$reports"
  echo "comment=$out/comment.md"
  case $code in 0 | 1 | 3) [ -z "$run" ] || echo "baseline=$out/baseline" ;; esac
} >> "$GITHUB_OUTPUT"
