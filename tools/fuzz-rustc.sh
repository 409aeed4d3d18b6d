#!/bin/sh
# Runs rustc for the fuzz targets: adds counters of coverage, which cargo-fuzz adds to all crates, to the crates that parse
# what others wrote. The other ones are those of `make test`, compiled already.
#   RUSTC_WRAPPER=tools/fuzz-rustc.sh cargo build ...
case ${CARGO_PKG_NAME-} in
  fathom-* | parquet)
    exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
      -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
      -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
  *) exec "$@" ;;
esac
