#!/usr/bin/env bash
# Installs the programs that tests require beyond Rust and reports those that it cannot install; the
# tests that need them are then skipped with a message. Not interactive; does nothing if all are present.
set -u
cd "$(dirname "$0")/.." || exit 1

# program  Debian package  purpose
needed='
cc           gcc         the linker
c++          g++         the fuzz targets
git          git         the list of checked files
unshare      util-linux  private mounts in tests
fusermount3  fuse3       the slow filesystem
python3      python3     the benchmarks, DuckDB, the browser tests
groff        groff-base  the man pages
mandoc       mandoc      the man pages
bash         bash        the completions
fish         fish        the completions
zsh          zsh         the completions
fdfind       fd-find     the comparison of ignore rules
ncdu         ncdu        the test of exports
sqlite3      sqlite3     the test of exports
tmux         tmux        the tests of the explorer
strace       strace      the system calls of the playground programs
go           golang-go   the playground
javac        default-jdk-headless  the playground
node         nodejs      the playground
chromium     chromium    the browser tests of reports and listings
chromedriver chromium-driver  the browser tests of reports and listings
curl         curl        client tests of the server
wget         wget        client tests of the server
mpiexec      openmpi-bin  scans by several machines
openssl      openssl     client tests of the server, and certificates
h2load       nghttp2-client  HTTP/2 client tests of the server
slowhttptest slowhttptest  slow client tests of the server
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
# Debian packages a part of Python's standard library separately.
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then
  echo 'setup: python3 cannot make environments (python3-venv, for DuckDB)'
  packages="$packages python3-venv"
fi

environments() {
  local target=${CARGO_TARGET_DIR:-$PWD/target} status=0
  tools/test-python.sh "$target/python-env" || status=1
  tools/test-node.sh "$target/node-env" || status=1
  return "$status"
}
[ -n "$packages" ] || { environments && echo 'setup: everything is there'; exit; }

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
  # A fresh machine has no package lists, and outdated lists name files that no longer exist.
  $root timeout 300 apt-get update -qq </dev/null
  failed=
  # One by one: a package that is missing from the archive must not prevent the others.
  for package in $packages; do
    install "$package" && echo "setup: installed $package" || failed="$failed $package"
  done
fi
[ -z "$failed" ] || echo "setup: cannot install$failed; tests that need it are skipped" >&2
environments && [ -z "$failed" ]
