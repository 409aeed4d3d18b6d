#!/usr/bin/env bash
# Fuzzes each target of fuzz/ for some seconds. The targets are those of cargo-fuzz. This script builds
# them like cargo-fuzz does (coverage counters, libFuzzer), but with stable Rust, without installing
# anything, and with counters in the crates under test alone. It uses no sanitizer: the code under test
# is safe Rust with its own bounds checks.
#   tools/fuzz.sh [SECONDS [TARGET]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
only=${2:-}

[ -f fuzz/Cargo.toml ] || { echo 'skipped: there is no fuzz/'; exit 77; }
command -v c++ >/dev/null || { echo 'skipped: no C++ compiler for libFuzzer'; exit 77; }

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/fuzz
RUSTC_WRAPPER=$PWD/tools/fuzz-rustc.sh tools/cargo.sh build --quiet --locked --manifest-path fuzz/Cargo.toml \
  --target-dir "$target" --bins

fuzz_one() {
  name=$(basename "$1" .rs)
  # New inputs stay in the target directory. fuzz/seeds/ has the committed initial inputs.
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/artifacts"
  seeds=fuzz/seeds/$name
  [ -d "$seeds" ] || seeds=
  if "$target/debug/$name" -max_total_time="$seconds" -timeout=5 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/artifacts/$name-" "$corpus" $seeds 2>&1; then
    echo "fuzz: $name: no failure in $seconds s"
  else
    echo "fuzz: $name: FAILED, the input is under $build/artifacts"
    return 1
  fi
}

# As many at once as there are CPUs; the output of each is printed whole.
export -f fuzz_one
export build seconds target
printf '%s\0' fuzz/fuzz_targets/${only:-*}.rs |
  xargs -0 -P "$(nproc)" -I{} bash -c 'output=$(fuzz_one {}); status=$?; echo "$output"; exit "$status"'
