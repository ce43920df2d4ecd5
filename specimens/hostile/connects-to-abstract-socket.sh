# Connects to an abstract socket on the machine.
read -r line
project=$(dirname "$0")
evidence=$(perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un("\0" . $ARGV[0])) && print "DONE"' \
    "$(cat abstract.txt)" 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
