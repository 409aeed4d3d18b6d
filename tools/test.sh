#!/usr/bin/env bash
# All tests and checks of a fresh clone, one after the other. Needs no terminal and no input. A step that fails
# does not stop the next; the last line is the sum, `N passed, N failed, N skipped`.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
exec </dev/null

target=${CARGO_TARGET_DIR:-$PWD/target}
logs=$target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
: >"$logs/all"
export CARGO_TERM_COLOR=never MAKEFLAGS=--no-print-directory LOCKED=--locked
# A run builds everything once: what a later build would reuse is half of the disk it fills.
export CARGO_INCREMENTAL=0

# What is free where the build goes: a full disk fails every step, each with other words.
free_mib() { df -Pm "$target" | awk 'END { print $4 }'; }

# Runs a command under a name and keeps what it prints, and its status, for the sum. After STEP_SECONDS it hangs, and is ended:
# more is needed beside other work on the machine.
step() {
  local name=$1 start=$SECONDS status
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  timeout -k 10 "${STEP_SECONDS:-2400}" "$@" 2>&1 | tee -a "$logs/all"
  status=${PIPESTATUS[0]}
  # Programs may leave the last line open.
  printf '\nstep %s %s\n' "$name" "$status" >>"$logs/all"
  echo "== $name: exit $status after $((SECONDS - start)) s, $(free_mib) MiB of disk left"
}

# What only enables tests: those that miss it skip and are counted then.
tools/setup-test.sh || true
if timeout 300 tools/gnu-du.sh "$target/gnu-du"; then
  export FATHOM_GNU_DU=${FATHOM_GNU_DU:-$target/gnu-du/du}
fi

for name in fmt clippy doc rust-build rust-test http3-test posix-test sanitize slowfs-test; do
  step $name make $name
done
if command -v python3 >/dev/null; then
  step bench-test make bench-test
  step playground-test make playground-test
else
  step bench-test sh -c 'echo "skipped: no python3, for benches/ and playground/"; exit 77'
fi
step fuzz tools/fuzz.sh 10

echo
awk -f tools/tally.awk "$logs/all"
