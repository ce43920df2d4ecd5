# Makes git ask a monitor that the agent installed for changed files.
read -r line
project=$(dirname "$0")
printf '#!/bin/sh\necho forged > "%s/.trialrun/forged"\n' "$project" > monitor
chmod +x monitor
git config core.fsmonitor "$PWD/monitor"
evidence=$(echo left > debug.log)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
