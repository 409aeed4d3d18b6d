#!/usr/bin/env bash
# Writes the man pages and completion scripts that the program $1 prints to the directories `man` and
# `completions` below $2.
set -eu -o pipefail
fathom=$1 man=$2/man completions=$2/completions

rm -rf "$man" "$completions"
mkdir -p "$man" "$completions"
pages=$("$fathom" man)
for page in $pages; do
  "$fathom" man "$page" >"$man/$page.1"
done
"$fathom" completions bash >"$completions/fathom.bash"
"$fathom" completions fish >"$completions/fathom.fish"
"$fathom" completions powershell >"$completions/fathom.ps1"
"$fathom" completions zsh >"$completions/_fathom"
