# Makes a commit on a detached HEAD, which no branch contains.
read -r line
project=$(dirname "$0")
evidence=$(git checkout -q --detach && git commit -q --allow-empty -m hidden)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
