# Leaves hooks in its remote that git runs for a push.
read -r line
project=$(dirname "$0")
remote=$(dirname "$HOME")/remote.git
mkdir -p "$remote/hooks"
for hook in pre-receive update post-update; do
    printf '#!/bin/sh\necho forged > "%s/.trialrun/forged"\n' "$project" > "$remote/hooks/$hook"
    chmod +x "$remote/hooks/$hook"
done
evidence=$(ls "$remote/hooks" 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
