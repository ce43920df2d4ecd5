# Presents a file of the project as its own work, by a hard link.
read -r line
project=$(dirname "$0")
evidence=$(ln "$project/secret.txt" result.txt 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
