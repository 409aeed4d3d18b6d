#!/usr/bin/env bash
# Runs a few tests of the Python package that need no native module: the driver of a distributed scan with worker
# processes and with MPI. tools/python-test.sh builds the package and runs all tests.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")
python=$target/python-env/bin/python3
[ -x "$python" ] || { echo 'skipped: no Python environment: tools/setup-test.sh'; exit 77; }

package=$target/python-smoke
rm -rf "$package"
mkdir -p "$package"
cp -r python/fathomfs "$package/"
# Each name of the native module is a class that nothing makes.
cat >"$package/fathomfs/_fathomfs.py" <<'END'
__version__ = "0"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
END
top=$PWD
cd "$package"
PYTHONPATH=$package:$top/python/tests "$python" -B -m unittest -v \
  test_coordinator test_distributed.Scans test_engines.Mpi.test_ranks_do_units
