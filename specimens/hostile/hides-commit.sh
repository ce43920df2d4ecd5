# Makes a commit on a detached HEAD, and returns to the branch.
read -r line
project=$(dirname "$0")
evidence=$(git checkout -q --detach && git commit -q --allow-empty -m hidden && git checkout -q main && rm -rf .git/logs)
printf '{"text": "done %s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
