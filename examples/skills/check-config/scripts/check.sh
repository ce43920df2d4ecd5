#!/bin/sh
# check.sh FILE: a line for each fault, as LINE CODE. Exits with 1 if there is one.
awk -F' *= *' '
  /^[ \t]*(#|$)/ { next }
  $1 == "timeout" && $2 !~ /^[0-9]+s$/ { print NR, "C12"; faults++ }
  $1 == "debug" && $2 == "on" { print NR, "C31"; faults++ }
  $1 == "listen" && $2 !~ /:/ { print NR, "C07"; faults++ }
  END { exit faults > 0 }
' "$1"
