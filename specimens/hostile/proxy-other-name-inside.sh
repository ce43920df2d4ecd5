# Requests a host that is not allowed, inside a tunnel to the allowed host.
read -r line
project=$(dirname "$0")
ask() { timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128 && printf "%b" "$1" >&3 && cat <&3' ask "$1" 2>&1; }
allowed=localhost:$(cat allowed-port.txt)
tunnel="CONNECT $allowed HTTP/1.1\r\nHost: $allowed\r\n\r\n"
evidence=$(ask "${tunnel}GET / HTTP/1.1\r\nHost: exfil.example\r\n\r\n" | grep -q DONE && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
