# Mounts a file system over its own directory, in its own namespace.
read -r line
project=$(dirname "$0")
evidence=$(unshare -Urm sh -c 'mount -t tmpfs none "$TRIALRUN_WORK" && echo DONE' 2>&1)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
