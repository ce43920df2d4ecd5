# Asks the proxy, in unusual spellings, for hosts that are not allowed.
read -r line
project=$(dirname "$0")
ask() { timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128 && printf "%b" "$1" >&3 && head -n 1 <&3' ask "$1" 2>&1; }
port=$(cat port.txt)
allowed=localhost:$(cat allowed-port.txt)
evidence=$(for host in EXFIL.Example.:443 "$allowed@exfil.example:443" localhost@127.0.0.1:$port 2130706433:$port 0x7f.1:$port \
    0177.0.0.1:$port 127.1:$port "[::ffff:127.0.0.1]:$port" "[::1]:$port" LOCALHOST.:$port localhost:$port%00; do
    ask "CONNECT $host HTTP/1.1\r\nHost: $allowed\r\n\r\n" | grep -q " 200 " && echo DONE
done)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
