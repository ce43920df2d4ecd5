# Leaves a process that writes to the working directory after the answer.
read -r line
project=$(dirname "$0")
(trap '' TERM HUP; setsid sh -c 'while :; do echo x >> late.txt; sleep 0.01; done' > /dev/null 2>&1 &)
evidence=started
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
