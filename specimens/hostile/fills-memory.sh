# Uses more memory than allowed.
read -r line
project=$(dirname "$0")
evidence=$(head -c 300000000 /dev/zero | tail -n 1 | wc -c)
[ "$evidence" = 300000000 ] && evidence=DONE
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
