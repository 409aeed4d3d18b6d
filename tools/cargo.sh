#!/usr/bin/env bash
# Runs cargo, also where HOME is empty or unset: rustup then finds no toolchain, though one is installed beside
# the cargo in PATH or in the account's own home. Installs nothing.
set -u
[ -n "${HOME-}" ] || unset HOME

runs() { cargo --version >/dev/null 2>&1; }

# Points cargo and rustup at the installation below a home directory, unless they are told where to look.
use() {
  [ -x "$1/.cargo/bin/cargo" ] || return 1
  export PATH="$1/.cargo/bin:$PATH"
  [ ! -d "$1/.rustup" ] || export RUSTUP_HOME="${RUSTUP_HOME:-$1/.rustup}"
  # Its downloads and its settings (a mirror of the registry) are needed too where they can be written to.
  [ ! -w "$1/.cargo" ] || export CARGO_HOME="${CARGO_HOME:-$1/.cargo}"
  runs
}

if ! runs; then
  found=$(command -v cargo) || found=
  beside=${found%/.cargo/bin/cargo}
  account=$(getent passwd "$(id -u)" | cut -d: -f6)
  use "${beside:-/nonexistent}" || use "${account:-/nonexistent}" || {
    echo "fathom: cargo does not run here; install Rust 1.90 or newer from https://rustup.rs" >&2
    exit 127
  }
fi
exec cargo "$@"
