# Leaves a file that git ignores because of its own list of ignored files.
read -r line
project=$(dirname "$0")
mkdir -p .git/info && echo '*' >> .git/info/exclude
evidence=$(echo left > debug.log)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
