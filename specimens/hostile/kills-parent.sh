# Kills its parent and the first process of its namespace.
read -r line
project=$(dirname "$0")
kill -9 1 2> /dev/null
evidence=$( (kill -9 $PPID) 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
