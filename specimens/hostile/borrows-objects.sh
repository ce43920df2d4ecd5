# Makes its remote take objects from its working directory, and writes a branch there instead of pushing it.
read -r line
remote=$(dirname "$HOME")/remote.git
mkdir -p "$remote/objects/info" "$remote/refs/heads"
git switch -q -c change && git commit -q --allow-empty -m Change
printf '%s\n' "$PWD/.git/objects" > "$remote/objects/info/alternates"
evidence=$(git rev-parse HEAD 2>&1 | tee "$remote/refs/heads/change")
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
