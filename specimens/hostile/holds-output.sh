# Leaves a process that keeps the output of its program open, so that the trial does not end.
read -r line
(trap '' TERM HUP INT PIPE; setsid sleep 600 2> /dev/null &)
printf '{"text": "end"}\n'
