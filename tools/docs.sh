#!/usr/bin/env bash
# Writes the man pages and completion scripts that the program $1 prints to the directories `man` and
# `completions` below $2.
set -eu -o pipefail
fathom=$1 man=$2/man completions=$2/completions

commands=$("$fathom" --help | sed -n '/^Commands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[ -n "$commands" ] || { echo "$0: no commands in the help of $fathom" >&2; exit 1; }
rm -rf "$man" "$completions"
mkdir -p "$man" "$completions"
"$fathom" man fathom >"$man/fathom.1"
for command in $commands; do
  "$fathom" man "fathom-$command" >"$man/fathom-$command.1"
done
"$fathom" completions bash >"$completions/fathom.bash"
"$fathom" completions fish >"$completions/fathom.fish"
"$fathom" completions powershell >"$completions/fathom.ps1"
"$fathom" completions zsh >"$completions/_fathom"
