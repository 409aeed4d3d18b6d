#!/usr/bin/env bash
# Tests the programs of the playground in the given languages, as many at once as there are CPUs. The output
# of each is printed whole.
#   tools/playground-test.sh LANGUAGE...
set -u
cd "$(dirname "$0")/.." || exit 1

test_one() {
  output=$(python3 -B playground/test_playground.py "$1" 2>&1)
  status=$?
  echo "$output"
  exit "$status"
}
export -f test_one
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I{} bash -c 'test_one {}'
