# Presents one of the project's files as its own work, through a hard link.
read -r line
project=$(dirname "$0")
evidence=$(ln "$project/secret.txt" result.txt 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
