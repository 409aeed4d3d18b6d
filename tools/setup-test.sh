#!/usr/bin/env bash
# Installs what the tests need beyond Rust, and says so when it cannot: the tests concerned then skip, and say
# that too. Asks nothing, changes nothing when all is there.
set -u
cd "$(dirname "$0")/.." || exit 1

# program  Debian package  what for
needed='
cc           gcc         the linker
c++          g++         the fuzz targets
git          git         the list of files that are checked
unshare      util-linux  mounts that only a test sees
fusermount3  fuse3       the slow filesystem
python3      python3     the benchmarks, DuckDB, a browser
groff        groff-base  the man pages
bash         bash        completions
fish         fish        completions
zsh          zsh         completions
fdfind       fd-find     what it leaves out, to compare
ncdu         ncdu        what it reads of an export
sqlite3      sqlite3     the same
strace       strace      which calls the programs of the playground make
go           golang-go   the playground
javac        default-jdk-headless  the same
node         nodejs      the same
chromium     chromium    reports of benchmarks, and what the server lists
chromedriver chromium-driver  the same
curl         curl        clients of the server
wget         wget        the same
openssl      openssl     the same, and certificates
h2load       nghttp2-client  the same, over HTTP/2
slowhttptest slowhttptest  the same, slow on purpose
'

packages=
while read -r program package use; do
  [ -n "$program" ] || continue
  command -v "$program" >/dev/null 2>&1 && continue
  echo "setup: $program is missing ($package, for $use)"
  packages="$packages $package"
done <<<"$needed"
if ! [ -e /usr/include/liburing.h ]; then
  echo 'setup: liburing.h is missing (liburing-dev, for the playground)'
  packages="$packages liburing-dev"
fi
# Debian has a part of Python's standard library in a package of its own.
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then
  echo 'setup: python3 cannot make environments (python3-venv, for DuckDB)'
  packages="$packages python3-venv"
fi

python_env() {
  tools/test-python.sh "${CARGO_TARGET_DIR:-$PWD/target}/python-env"
}
[ -n "$packages" ] || { python_env && echo 'setup: everything is there'; exit; }

root=
[ "$(id -u)" = 0 ] || root='sudo -n'
install() {
  $root env DEBIAN_FRONTEND=noninteractive timeout 300 \
    apt-get install -y -qq -o Dpkg::Use-Pty=0 "$1" </dev/null >/dev/null
}

if ! command -v apt-get >/dev/null; then
  failed="$packages, there is no apt-get"
elif [ -n "$root" ] && ! $root true 2>/dev/null; then
  failed="$packages, being neither root nor allowed to sudo without a password"
else
  # A machine that is fresh has no list of packages, and an old list names files that are gone.
  $root timeout 300 apt-get update -qq </dev/null
  failed=
  # One by one: what one archive lacks must not keep the others away.
  for package in $packages; do
    install "$package" && echo "setup: installed $package" || failed="$failed $package"
  done
fi
[ -z "$failed" ] || echo "setup: cannot install$failed; tests that need it are skipped" >&2
python_env && [ -z "$failed" ]
