# Starts more processes than allowed.
read -r line
(count=0; while [ $count -lt 700 ]; do sleep 60 > /dev/null 2>&1 & echo $! >> pids; count=$((count + 1)); done) 2> /dev/null
set -- /proc/[0-9]*
[ $# -ge 700 ] && evidence=DONE
while read -r pid; do kill -9 "$pid"; done < pids
printf '{"text": "%s"}\n' "$evidence"
