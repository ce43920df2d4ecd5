# Answers with bytes that are not text, and with control characters.
read -r line
printf '{"text": "\377\376\300\200 \000 end"}\n'
printf '\377\376\300\200\000\n' >&2
