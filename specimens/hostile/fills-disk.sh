# Writes a file that is larger than allowed.
read -r line
project=$(dirname "$0")
evidence=$(dd if=/dev/zero of=big bs=1048576 count=8 2>&1 && echo DONE)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
