#!/usr/bin/env bash
# Runs all tests and checks of a fresh clone, without a terminal and without input. What needs the compiler's output runs
# in two lanes after the build, as most of the steps wait for something else towards their end. A failed step does not stop
# the next one. The last line is the sum, `N passed, N failed, N skipped`.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
exec </dev/null

target=${CARGO_TARGET_DIR:-$PWD/target}
logs=$target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
export CARGO_TERM_COLOR=never MAKEFLAGS=--no-print-directory LOCKED=--locked
# Everything is built once, so incremental data would never be reused; it takes half of the disk space. Lines of
# backtraces are a fifth of the time of compiling, and no test reads them.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# Free space of the target directory. A full disk fails every step with a different message.
free_mib() { df -Pm "$target" | awk 'END { print $4 }'; }

# Prints the processes below a process.
descendants() {
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    descendants "$child"
  done
}

# Ends both lanes and their steps. A terminal's Ctrl-C does not reach the steps: timeout gives each a process group of its
# own, to which it passes on what it gets.
stop() {
  trap '' INT TERM HUP
  kill $(descendants $$) 2>/dev/null
  wait
  echo 'make test: interrupted, not all tests ran' >&2
  exit 130
}
trap stop INT TERM HUP

# Runs a command under a name and logs its output and status for the sum. Kills it after STEP_SECONDS,
# which has to be longer on a busy machine.
step() {
  local name=$1 start=$SECONDS status cpu TIMEFORMAT='%U %S'
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  # In a shell of its own, which does not count the lane beside it.
  (
    time timeout -k 10 "${STEP_SECONDS:-3600}" "$@" 2>&1 | tee "$logs/$name.log"
    exit "${PIPESTATUS[0]}"
  ) 2>"$logs/$name.cpu" &
  # A trap interrupts this, but no command in the foreground.
  wait $!
  status=$?
  cpu=$(awk '{ print int($1 + $2) }' "$logs/$name.cpu")
  # The last line of the output may lack its line end.
  printf '\nstep %s %s\n' "$name" "$status" >>"$logs/$name.log"
  printf '%d\t%d\t%s\n' $((SECONDS - start)) "$cpu" "$name" >>"$logs/steps.tsv"
  echo "== $name: exit $status after $((SECONDS - start)) s, $(free_mib) MiB of disk left"
}

# Optional programs: tests that require a missing one are counted as skipped. Only a compiler is needed before that.
setup() {
  tools/setup-test.sh || true
  timeout 300 tools/gnu-du.sh "$target/gnu-du" || true
}
if command -v cc >/dev/null; then
  setup >"$logs/setup.txt" 2>&1 &
else
  setup
fi

for name in fmt clippy-apart rust-build; do
  step $name make $name
done
wait
[ ! -e "$logs/setup.txt" ] || cat "$logs/setup.txt"
[ ! -x "$target/gnu-du/du" ] || export FATHOM_GNU_DU=${FATHOM_GNU_DU:-$target/gnu-du/du}

beside() {
  step playground-test make playground-test
  step python-test make python-test
  step bench-test make bench-test
  step fuzz tools/fuzz.sh 10
}
if command -v python3 >/dev/null; then
  beside >"$logs/beside.txt" 2>&1 &
else
  step bench-test sh -c 'echo "skipped: no python3, for packages, benches/, playground/ and the Python package"; exit 77'
  step fuzz tools/fuzz.sh 10
fi
for name in rust-test posix-test sanitize model-test slowfs-test; do
  step $name make $name
done
! command -v python3 >/dev/null || step package-test make package-test
wait
[ ! -e "$logs/beside.txt" ] || cat "$logs/beside.txt"

printf '\nSeconds of each step, and of its processor time:\n'
sort -rn "$logs/steps.tsv"
if [ -s "$logs/tests.tsv" ]; then
  printf '\nThe ten slowest tests, in seconds:\n'
  head -n 10 "$logs/tests.tsv"
fi

echo
cat "$logs"/*.log | awk -f tools/tally.awk
