#!/bin/sh
got=$(sh names.sh Ada Lovelace) || { echo "not ok: names.sh refuses two names"; exit 1; }
[ "$got" = "Lovelace, A." ] || { echo "not ok: Lovelace, A. and not $got"; exit 1; }
echo "ok: 1 of 1"
