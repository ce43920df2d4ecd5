# Runs the tests of the project in the working directory, as its files say. Exits with 127 if it finds no command.
has() {
    for name do [ ! -e "$name" ] || return 0; done
    return 1
}
says() { grep -Eqs "$1" "$2"; }
none() {
    printf 'trialrun: %s\n' "$1" >&2
    exit 127
}
run() {
    command -v "$1" > /dev/null || none "the project's tests need \`$1\`, which is not installed"
    printf 'trialrun: test command: %s\n' "$*" >&2
    exec "$@"
}

if says '"test"[[:space:]]*:' package.json; then
    if has pnpm-lock.yaml; then run pnpm test; fi
    if has yarn.lock; then run yarn test; fi
    if has bun.lock bun.lockb; then run bun run test; fi
    run npm test
fi
if has deno.json deno.jsonc; then run deno test; fi
if has Cargo.toml; then run cargo test; fi
if has go.mod; then run go test ./...; fi
if has mvnw && has pom.xml; then run sh ./mvnw -q test; fi
if has pom.xml; then run mvn -q test; fi
if has gradlew; then run sh ./gradlew test; fi
if has build.gradle build.gradle.kts; then run gradle test; fi
if has mix.exs; then run mix test; fi
if has Package.swift; then run swift test; fi
if has build.zig; then run zig build test; fi
if has ./*.sln ./*.csproj ./*.fsproj; then run dotnet test; fi
if has phpunit.xml phpunit.xml.dist phpunit.dist.xml; then
    if has vendor/bin/phpunit; then run php vendor/bin/phpunit; fi
    run phpunit
fi
if has .rspec spec/spec_helper.rb; then
    if has Gemfile; then run bundle exec rspec; fi
    run rspec
fi
if says 'TestTask|task[ (]:?"?test' Rakefile; then run rake test; fi
can_pytest() { python3 -c 'import pytest' 2> /dev/null; }
is_pytest=
if has pytest.ini .pytest.ini conftest.py tests/conftest.py || says '^\[tool\.pytest' pyproject.toml ||
    says '^\[tool:pytest\]' setup.cfg || says '^\[pytest\]' tox.ini; then
    is_pytest=1
    if can_pytest; then run python3 -m pytest; fi
fi
if has ./test_*.py ./*_test.py tests/test_*.py test/test_*.py tests/*_test.py; then
    if can_pytest; then run python3 -m pytest; fi
    if has ./test_*.py; then run python3 -m unittest; fi
    if has tests/test_*.py; then run python3 -m unittest discover -s tests -t .; fi
    if has test/test_*.py; then run python3 -m unittest discover -s test -t .; fi
fi
[ -z "$is_pytest" ] || none "the project's tests need pytest, which is not installed"
for file in GNUmakefile makefile Makefile; do
    if says '^test[[:space:]]*:' "$file"; then run make test; fi
    if says '^check[[:space:]]*:' "$file"; then run make check; fi
done
for file in justfile Justfile .justfile; do
    if says '^test( [^:]*)?:' "$file"; then run just test; fi
done
if has test/*.bats tests/*.bats; then
    if has tests/*.bats; then run bats tests; fi
    run bats test
fi
for file in test.sh run-tests.sh run_tests.sh run-tests scripts/test.sh scripts/test tests/run.sh tests/test.sh; do
    [ ! -f "$file" ] || run sh "./$file"
done
none "the project does not say how its tests are run; set \`command\`"
