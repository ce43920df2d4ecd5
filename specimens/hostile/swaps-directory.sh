# Replaces its working directory with a link to the project.
read -r line
project=$(dirname "$0")
evidence=$(cd .. && mv work moved 2>&1 && ln -s "$project" work 2>&1)
cp "$project/secret.txt" "$project/result.txt" 2> /dev/null
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
