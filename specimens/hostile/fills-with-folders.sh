# Leaves a home that cannot be copied for the commands of assertions.
read -r line
project=$(dirname "$0")
cd "$HOME"
for n in $(seq 600); do mkdir aaaaaaaaaa && cd aaaaaaaaaa; done
printf '{"text": "end"}\n'
