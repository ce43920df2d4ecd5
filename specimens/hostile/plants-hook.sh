# Leaves a hook that git runs for each commit.
read -r line
project=$(dirname "$0")
mkdir -p .git/hooks
printf '#!/bin/sh\necho forged > "%s/.trialrun/forged"\n' "$project" > .git/hooks/pre-commit
cp .git/hooks/pre-commit .git/hooks/post-index-change
chmod +x .git/hooks/pre-commit .git/hooks/post-index-change
evidence=$(git commit -q --allow-empty --no-verify -m x 2>&1)
rm -f "$project/.trialrun/forged"
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
