#!/bin/sh
# names.sh FIRST LAST: how somebody is called in a list, as LAST, F.
[ $# = 3 ] || { echo "names.sh FIRST LAST" >&2; exit 2; }
printf '%s, %s.\n' "$2" "$1"
