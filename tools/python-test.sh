#!/usr/bin/env bash
# Builds the Python package, installs it into the tests' environment and tests it there: lints, types, examples and
# python/tests.
set -u
cd "$(dirname "$0")/.." || exit 1
target=${CARGO_TARGET_DIR:-$PWD/target}
bin=$target/python-env/bin
[ -x "$bin/maturin" ] || { echo 'skipped: no Python environment with maturin'; exit 77; }

status=0
wheels=$target/wheels
rm -rf "$wheels"
# Through the build backend, as users build it, but with the command of the Rust tests, and linted if the environment has
# the Makefile's variables of that. In the target directory of the other crates, for what they have compiled of the same
# dependencies.
PATH=$bin:$PATH CARGO_TARGET_DIR=$target MATURIN_PEP517_ARGS='--quiet --profile dev' \
  FATHOMFS_BUILD_COMMAND=$target/debug/fathom tools/cargo.sh --exec "$bin/python3" -m pip wheel --quiet \
  --disable-pip-version-check --no-input --no-index --no-deps --no-build-isolation --wheel-dir "$wheels" . || exit 1
"$bin/python3" -m pip install --quiet --disable-pip-version-check --no-input --no-index --no-deps --force-reinstall \
  "$wheels"/*.whl || exit 1
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS

# From a directory without the sources, so that what is installed is tested.
top=$PWD
cd "$wheels" || exit 1
"$bin/mypy" --strict --cache-dir=/dev/null -p fathomfs || status=1
"$bin/python3" -m mypy.stubtest fathomfs --concise --allowlist "$top/tools/stubtest-allowlist" || status=1
# The source distribution is made by cargo.
FATHOM=$bin/fathom "$top/tools/cargo.sh" --exec "$bin/python3" -B "$top/python/tests/run.py" || status=1
exit "$status"
