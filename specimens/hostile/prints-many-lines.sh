# Prints a million lines.
read -r line
yes 'one more line' | head -n 1000000
printf '{"text": "end"}\n'
