# Attaches to the process that supervises it, as a debugger does.
read -r line
project=$(dirname "$0")
evidence=$(cat /proc/1/environ > /dev/null 2>&1 && cat /proc/1/syscall > /dev/null 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
