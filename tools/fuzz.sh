#!/usr/bin/env bash
# Fuzzes each target of fuzz/ for some seconds. The targets are cargo-fuzz's, and this is what cargo-fuzz does
# (coverage counters in the code, libFuzzer around it), but on stable Rust and without installing anything:
# the code under test is safe Rust, so a sanitizer would add nothing to its own bounds checks.
#   tools/fuzz.sh [SECONDS [TARGET]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
only=${2:-}

[ -f fuzz/Cargo.toml ] || { echo 'skipped: there is no fuzz/'; exit 77; }
command -v c++ >/dev/null || { echo 'skipped: no C++ compiler for libFuzzer'; exit 77; }

top=$PWD
build=${CARGO_TARGET_DIR:-$top/target}/fuzz
host=$(tools/cargo.sh -vV | sed -n 's/^host: //p')
counters='-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares'
# With --target the flags miss build scripts, whose programs have no libFuzzer to call.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module $(echo $counters) -Ccodegen-units=1 -Cdebug-assertions" \
  tools/cargo.sh build --quiet --release --locked --manifest-path fuzz/Cargo.toml \
  --target "$host" --target-dir "$build" --bins

status=0
for source in fuzz/fuzz_targets/*.rs; do
  name=$(basename "$source" .rs)
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  # New inputs stay in target/; what is kept under fuzz/seeds/ is where they start from.
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/artifacts"
  seeds=fuzz/seeds/$name
  [ -d "$seeds" ] || seeds=
  if "$build/$host/release/$name" -max_total_time="$seconds" -timeout=5 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/artifacts/$name-" "$corpus" $seeds; then
    echo "fuzz: $name: no failure in $seconds s"
  else
    echo "fuzz: $name: FAILED, the input is under $build/artifacts" >&2
    status=1
  fi
done
exit $status
