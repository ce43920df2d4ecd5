#!/usr/bin/env bash
# Installs trialrun for the steps that follow: a release whose checksum is verified, or a build from source.
# Environment: INPUT_INSTALL is release, source or none; INPUT_VERSION is a version, or latest, or empty for the version
# of the action; ACTION_REPOSITORY and ACTION_REF say where the action is from; TRIALRUN_RELEASES is the address of the
# releases if it is not the one on GitHub.
set -euo pipefail

bin=$RUNNER_TEMP/trialrun-program

target() {
  local system machine
  case $(uname -s) in
    Linux) system=unknown-linux-musl ;; # linked statically, so it runs with any C library
    Darwin) system=apple-darwin ;;
    *) echo "there is no release for $(uname -s): set the input install to source" >&2; return 1 ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) echo "there is no release for $(uname -m): set the input install to source" >&2; return 1 ;;
  esac
  echo "$machine-$system"
}

sha256() { # file
  if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

install_release() {
  local version=${INPUT_VERSION:-} releases address name wanted got
  if [ -z "$version" ]; then
    case ${ACTION_REF:-} in v[0-9]*.[0-9]*.[0-9]*) version=$ACTION_REF ;; *) version=latest ;; esac
  fi
  releases=${TRIALRUN_RELEASES:-${GITHUB_SERVER_URL:-https://github.com}/${ACTION_REPOSITORY:-$GITHUB_REPOSITORY}/releases}
  case $version in
    latest) address=$releases/latest/download ;;
    *) address=$releases/download/v${version#v} ;;
  esac
  name=trialrun-$(target)
  mkdir -p "$bin"
  for file in "$name.tar.gz" checksums.txt; do
    curl --silent --show-error --fail --location --retry 3 --proto '=https,file' --output "$bin/$file" "$address/$file" ||
      { echo "::error title=trialrun::Could not download $address/$file. The input version selects another release, install: source builds it."; return 1; }
  done
  wanted=$(awk -v name="$name.tar.gz" '$2 == name || $2 == "*" name { print $1 }' "$bin/checksums.txt")
  got=$(sha256 "$bin/$name.tar.gz")
  if [ -z "$wanted" ] || [ "$wanted" != "$got" ]; then
    rm -f "$bin/$name.tar.gz"
    echo "::error title=trialrun::The checksum of $name.tar.gz is $got, but checksums.txt has ${wanted:-none for this file}. Nothing was installed."
    return 1
  fi
  tar -xzf "$bin/$name.tar.gz" -C "$bin" --strip-components 1 "$name/trialrun"
}

case ${INPUT_INSTALL:-release} in
  release) install_release ;;
  source)
    cargo install --locked --path "$GITHUB_ACTION_PATH/crates/cli" --root "$RUNNER_TEMP/trialrun-build"
    bin=$RUNNER_TEMP/trialrun-build/bin
    ;;
  none)
    program=$(command -v trialrun) || { echo "::error title=trialrun::install: none needs trialrun on the PATH."; exit 1; }
    bin=$(dirname "$program")
    ;;
  *) echo "::error title=trialrun::The input install must be release, source or none, not $INPUT_INSTALL."; exit 1 ;;
esac

"$bin/trialrun" --version
echo "$bin" >> "$GITHUB_PATH"
