# Connects to a server on the machine over IPv6.
read -r line
project=$(dirname "$0")
evidence=$(timeout 10 bash -c ": < /dev/tcp/::1/$(cat port.txt)" 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
