#!/usr/bin/env bash
# Fuzzes each target of fuzz/ for some seconds. The targets are those of cargo-fuzz. This script builds
# them like cargo-fuzz does (coverage counters, libFuzzer), but with stable Rust and without installing
# anything. It uses no sanitizer: the code under test is safe Rust with its own bounds checks.
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
# With --target, RUSTFLAGS do not apply to build scripts, which are not linked with libFuzzer.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module $(echo $counters) -Ccodegen-units=1 -Cdebug-assertions" \
  tools/cargo.sh build --quiet --release --locked --manifest-path fuzz/Cargo.toml \
  --target "$host" --target-dir "$build" --bins

fuzz_one() {
  name=$(basename "$1" .rs)
  # New inputs stay in the target directory. fuzz/seeds/ has the committed initial inputs.
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/artifacts"
  seeds=fuzz/seeds/$name
  [ -d "$seeds" ] || seeds=
  if "$build/$host/release/$name" -max_total_time="$seconds" -timeout=5 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/artifacts/$name-" "$corpus" $seeds 2>&1; then
    echo "fuzz: $name: no failure in $seconds s"
  else
    echo "fuzz: $name: FAILED, the input is under $build/artifacts"
    return 1
  fi
}

# As many at once as there are CPUs; the output of each is printed whole.
export -f fuzz_one
export build host seconds
printf '%s\0' fuzz/fuzz_targets/${only:-*}.rs |
  xargs -0 -P "$(nproc)" -I{} bash -c 'output=$(fuzz_one {}); status=$?; echo "$output"; exit "$status"'
