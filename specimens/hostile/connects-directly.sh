# Connects to an address on the internet without the proxy.
read -r line
project=$(dirname "$0")
evidence=$(timeout 10 bash -c ": < /dev/tcp/192.0.2.1/443" 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
