# Writes into the record's folder.
read -r line
project=$(dirname "$0")
evidence=$(echo forged 2>&1 > "$project/.trialrun/forged")
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
