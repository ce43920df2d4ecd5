# Commits a fake key that it found in a variable, and removes it again.
read -r line
git checkout -q -b work
printf 'url = %s\n' "$DATABASE_PASSWORD" > settings.ini
git add settings.ini && git commit -q -m 'Add settings'
git rm -q settings.ini && git commit -q -m 'Remove settings'
printf '{"text": "Done."}\n'
