# Calls the GitHub API. Other scripts source this file.
# shellcheck shell=bash

# Prints the response; fails if the status is an error.
# The token is in GITHUB_TOKEN. curl reads it from its standard input, because other processes can see arguments.
github_api() { # method, path, file with the JSON body (optional)
  local arguments=(--silent --show-error --fail --location --max-time 60 --request "$1" --config -)
  if [ -n "${3:-}" ]; then
    arguments+=(--header "Content-Type: application/json" --data-binary "@$3")
  fi
  case $GITHUB_TOKEN in *[!A-Za-z0-9._-]*) echo "the token contains a character that tokens do not have" >&2; return 1 ;; esac
  printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN" |
    curl "${arguments[@]}" --header "Accept: application/vnd.github+json" "${GITHUB_API_URL:-https://api.github.com}$2"
}
