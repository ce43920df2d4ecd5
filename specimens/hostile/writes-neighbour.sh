# Writes into the sandbox of another trial.
read -r line
project=$(dirname "$0")
evidence=$(for work in "$TRIALRUN_WORK"/../../*/work; do
    [ "$work" -ef "$TRIALRUN_WORK" ] || echo forged 2>&1 > "$work/forged"
done)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
