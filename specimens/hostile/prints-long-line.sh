# Prints a line of a gigabyte.
read -r line
head -c 1000000000 /dev/zero | tr '\0' x
printf '\n{"text": "end"}\n'
