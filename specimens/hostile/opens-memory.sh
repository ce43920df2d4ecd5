# Opens the memory of the process that supervises it.
read -r line
project=$(dirname "$0")
evidence=$( (exec 3<> /proc/1/mem) 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
