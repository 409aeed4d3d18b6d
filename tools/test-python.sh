#!/usr/bin/env bash
# Creates the Python environment of the tests of `fathom query` and `fathom bench` in the directory $1,
# unless it exists. Installs wheels only, so that no code of a package runs during the installation.
set -u
cd "$(dirname "$0")/.." || exit 1
dir=$1
wanted=tools/test-requirements.txt

cmp -s "$wanted" "$dir/requirements.txt" && exit 0
command -v python3 >/dev/null || { echo 'setup: no python3 for DuckDB, Polars, pyarrow, scipy and Selenium' >&2; exit 1; }

# Replaces the package's wrapper script by the program itself, so that signals reach the program.
link_program() {
  "$dir/bin/python3" - "$dir/bin/duckdb" <<'END'
import os, sys
import duckdb_cli

os.remove(sys.argv[1])
os.symlink(os.path.join(os.path.dirname(duckdb_cli.__file__), "duckdb"), sys.argv[1])
END
}

rm -rf "$dir"
echo "setup: making a Python environment with DuckDB, Polars, pyarrow, scipy and Selenium in $dir"
if timeout 120 python3 -m venv "$dir" >/dev/null &&
  timeout 1800 "$dir/bin/python3" -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: \
    --requirement "$wanted" </dev/null &&
  link_program; then
  # Written last: an interrupted installation is repeated.
  cp "$wanted" "$dir/requirements.txt"
else
  rm -rf "$dir"
  echo 'setup: cannot make it; tests with DuckDB, Polars, pyarrow, scipy or a browser are skipped' >&2
  exit 1
fi
