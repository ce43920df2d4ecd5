echo no heading >&2
exit 3
