#!/usr/bin/env bash
# Runs rustdoc. Before it tests the examples of a crate, it makes the documentation, with warnings denied, from what is
# compiled by then: `cargo doc` would compile every dependency once more.
#   RUSTDOC=tools/rustdoc.sh cargo test --doc
set -eu
case " $* " in *' --test '*) ;; *) exec rustdoc "$@" ;; esac

# The options without those of tests.
words=()
is_value=
for word in "$@"; do
  case $word in
    --test | --no-run | --nocapture | --test-*=* | --persist-doctests=*) ;;
    --test-* | --persist-doctests) is_value=1 ;;
    *) [ -n "$is_value" ] || words+=("$word"); is_value= ;;
  esac
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
rustdoc "${words[@]}" -Dwarnings --out-dir "$out"
rustdoc "$@"
