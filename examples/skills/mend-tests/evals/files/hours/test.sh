#!/bin/sh
failed=0
expect() { # minutes, what they are
  got=$(sh hours.sh "$1")
  [ "$got" = "$2" ] || { echo "not ok: $1 minutes are $2, not $got"; failed=1; }
}
expect 60 1:00
expect 125 2:05
expect 600 10:00
[ "$failed" = 0 ] && echo "ok: 3 of 3"
exit "$failed"
