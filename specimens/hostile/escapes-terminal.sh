# Answers with escape sequences that clear the terminal, set its title and print another result.
read -r line
printf '%s\n' '{"text": "\u001b[2J\u001b[H\u001b]0;owned\u0007\u009b2J PASSED"}'
printf '\033[2Jall tests passed\033[1A' >&2
