# Writes into the remote of another trial.
read -r line
own=$(dirname "$HOME")/remote.git
evidence=$(for remote in "$own"/../../*/remote.git; do
    [ "$remote" -ef "$own" ] || echo forged 2>&1 > "$remote/forged"
done)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
