# Answers with JSON nested 10,000 levels deep.
read -r line
printf '{"text": "end", "value": '
printf '[%.0s' $(seq 10000)
printf ']%.0s' $(seq 10000)
printf '}\n'
