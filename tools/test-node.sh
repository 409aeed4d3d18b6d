#!/usr/bin/env bash
# Installs the runtimes of JavaScript that are packages of npm, for the tests of `fathom bench`, in the
# directory $1, unless they are there. The package of each has the program itself; no code of a package
# runs during the installation.
set -u
dir=$1
wanted='bun 1.4.5 deno 2.9.6'

[ "$(cat "$dir/installed" 2>/dev/null)" = "$wanted" ] && exit 0
command -v npm >/dev/null || { echo 'setup: no npm for Bun and Deno; their tests are skipped' >&2; exit 1; }
case $(uname -m) in
  x86_64) bun=@oven/bun-linux-x64 deno=@deno/linux-x64-glibc ;;
  aarch64) bun=@oven/bun-linux-aarch64 deno=@deno/linux-arm64-glibc ;;
  *) echo "setup: there is no Bun and no Deno for $(uname -m); their tests are skipped" >&2; exit 1 ;;
esac

rm -rf "$dir"
echo "setup: installing Bun and Deno in $dir"
if mkdir -p "$dir/bin" && (
  cd "$dir" &&
    timeout 300 npm install --silent --no-audit --no-fund --ignore-scripts --prefix . \
      "$bun@1.4.5" "$deno@2.9.6" </dev/null &&
    ln -s "../node_modules/$bun/bin/bun" bin/bun && ln -s "../node_modules/$deno/deno" bin/deno &&
    bin/bun --version >/dev/null && bin/deno --version >/dev/null
); then
  # Written last: an interrupted installation is repeated.
  echo "$wanted" >"$dir/installed"
else
  rm -rf "$dir"
  echo 'setup: cannot install Bun and Deno; their tests are skipped' >&2
  exit 1
fi
