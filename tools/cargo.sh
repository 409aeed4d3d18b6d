#!/usr/bin/env bash
# Runs cargo even if HOME is empty or unset. rustup then finds no toolchain, so this script looks for
# one beside the cargo in PATH and in the home directory of the account. Installs nothing. With
# --exec COMMAND, runs a command that calls cargo itself.
set -u
[ -n "${HOME-}" ] || unset HOME

runs() { cargo --version >/dev/null 2>&1; }

# Points cargo and rustup at the installation below a home directory, unless the environment already
# names another one.
use() {
  [ -x "$1/.cargo/bin/cargo" ] || return 1
  export PATH="$1/.cargo/bin:$PATH"
  [ ! -d "$1/.rustup" ] || export RUSTUP_HOME="${RUSTUP_HOME:-$1/.rustup}"
  # CARGO_HOME also holds downloads and settings (a registry mirror), but must be writable.
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
if [ "${1-}" = --exec ]; then
  shift
  exec "$@"
fi
exec cargo "$@"
