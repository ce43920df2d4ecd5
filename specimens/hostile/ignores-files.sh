# Leaves a file that git does not show because of settings in the repository and in its home.
read -r line
project=$(dirname "$0")
echo '*' > "$HOME/ignored"
git config core.excludesFile "$HOME/ignored"
git config status.showUntrackedFiles no
git config --global core.excludesFile "$HOME/ignored"
git config --global status.showUntrackedFiles no
mkdir -p "$HOME/.config/git" && echo '*' > "$HOME/.config/git/ignore"
evidence=$(echo left > debug.log)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
