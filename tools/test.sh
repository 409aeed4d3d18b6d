#!/usr/bin/env bash
# Runs the tests and checks of a fresh clone, without a terminal and without input.
#   tools/test.sh         a part of the cases: what one wants to know before a commit
#   tools/test.sh all     every case, every model and every language; SHARD=K/N runs a share of it
# What needs the compiler's output runs in two lanes after the build, as most of the steps wait for something else
# towards their end; after both come the tests that must run alone. A failed step does not stop the next one. The last
# line is the sum, `N passed, N failed, N skipped`.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
exec </dev/null
# With an empty HOME, cargo runs by way of tools/cargo.sh alone. Tests call it by its name.
cargo --version >/dev/null 2>&1 || exec tools/cargo.sh --exec tools/test.sh "$@"

case ${1:-} in
  '') tier=test ;;
  all)
    tier=test-all
    export FATHOM_TESTS=all FUZZ_SECONDS=${FUZZ_SECONDS:-10} FATHOM_FIRST_SEED=${FATHOM_FIRST_SEED:-$((RANDOM * 32768 + RANDOM))}
    ;;
  *) echo "tools/test.sh: expected nothing or 'all', found '$1'" >&2; exit 2 ;;
esac
target=${CARGO_TARGET_DIR:-$PWD/target}
logs=$target/test-logs/$tier
export FATHOM_TEST_LOGS=$logs
rm -rf "$logs"
mkdir -p "$logs"
export CARGO_TERM_COLOR=never MAKEFLAGS=--no-print-directory LOCKED=--locked
# Everything is built once, so incremental data would never be reused; it takes half of the disk space. Lines of
# backtraces are a fifth of the time of compiling, and no test reads them.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# The tests' temporary files. Without a journal, ext4 does not reuse an inode number for minutes after its file is removed,
# and searches past all of them for each new file: the more tests have ended, the slower files are made, up to ten times.
# With the attribute T, each directory of a test has its inodes in another part of the disk.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/fathom-test.XXXXXX") || exit 1
export TMPDIR
# Some tests act as another user, who has to reach their files and the programs, or name modes of new files.
umask 022
# The tests of a program share its descriptors, of which most users have 1,024 at first.
ulimit -Sn "$(ulimit -Hn)"
chmod 755 "$TMPDIR"
chattr +T "$TMPDIR" 2>/dev/null || true
clean_up() {
  rm -rf "$TMPDIR" 2>/dev/null || { chmod -R u+rwX "$TMPDIR"; rm -rf "$TMPDIR"; }
}
trap clean_up EXIT

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
  echo "make $tier: interrupted, not all tests ran" >&2
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

# Optional programs: tests that require a missing one are counted as skipped. Only a compiler and Python are needed
# before that.
setup() {
  tools/setup-test.sh || true
  timeout 300 tools/gnu-du.sh "$target/gnu-du" || true
}
if command -v cc >/dev/null && command -v python3 >/dev/null; then
  setup >"$logs/setup.txt" 2>&1 &
else
  setup
  command -v python3 >/dev/null || { echo "make $tier: needs Python 3.11 or newer" >&2; exit 1; }
fi

# Steps of both lanes. Those of a run of everything that belong to no other shard.
if [ $tier = test ]; then
  first=fmt beside='bench-test python-smoke playground-smoke'
else
  first=$(tools/shards.py fmt clippy-apart) || exit 2
  beside=$(tools/shards.py playground-{bun,c,cpp,deno,go,java,node,python,rust-crates,zig} python-test bench-test fuzz)
  own=$(tools/shards.py http3-test posix-test sanitize model-test slowfs-test package-test)
fi

for name in $first rust-build; do
  step $name make $name
done
wait
[ ! -e "$logs/setup.txt" ] || cat "$logs/setup.txt"
[ ! -x "$target/gnu-du/du" ] || export FATHOM_GNU_DU=${FATHOM_GNU_DU:-$target/gnu-du/du}

lane() {
  for name in $beside; do
    step "$name" make "$name"
  done
}
lane >"$logs/beside.txt" 2>&1 &
for name in rust-test ${own:-}; do
  step "$name" make "$name"
done
wait
[ ! -e "$logs/beside.txt" ] || cat "$logs/beside.txt"
step rust-test-alone make rust-test-alone

printf '\nSeconds of each step, and of its processor time:\n'
sort -rn "$logs/steps.tsv"
if [ -s "$logs/tests.tsv" ]; then
  printf '\nThe ten slowest tests, in seconds:\n'
  sort -rn "$logs/tests.tsv" | head -n 10
fi

echo
[ $tier = test ] || echo "the first seed of random cases: FATHOM_FIRST_SEED=$FATHOM_FIRST_SEED"
awk -v wall=$SECONDS '{ cpu += $2 } END { printf "%d min %d s, %d CPU-seconds\n", wall / 60, wall % 60, cpu }' "$logs/steps.tsv"
cat "$logs"/*.log | awk -f tools/tally.awk
