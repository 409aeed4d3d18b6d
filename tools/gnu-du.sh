#!/bin/sh
# Unpacks the newest GNU du of Debian into DIR, with the wrapper DIR/du, as a reference for tests.
#
# Uses the package mirrors of this machine's apt configuration, but private lists, cache and state below
# DIR: nothing is installed, and apt's own state does not change. du comes with its own C library and
# dynamic linker, because the machine's may be older. Does nothing if DIR/du works. On failure prints one
# line and exits with 1; DIR/log has the details.
set -eu
LC_ALL=C
export LC_ALL

fail() {
    echo "gnu-du: cannot obtain GNU du: $1" >&2
    exit 1
}

[ $# -eq 1 ] && [ -n "$1" ] || { echo "usage: $0 DIR" >&2; exit 2; }
if "$1/du" --version >/dev/null 2>&1; then exit 0; fi

for tool in apt-get dpkg awk find; do
    command -v $tool >/dev/null || fail "$tool is missing"
done
mkdir -p "$1" 2>/dev/null || fail "$1 is not a directory that can be made"
dir=$(cd "$1" && pwd)
case $dir in *[!A-Za-z0-9_./+-]*) fail "apt needs a directory name without special characters, not $dir" ;; esac
[ -w "$dir" ] || fail "$dir is not writable"
: >"$dir/log"

# Prints "URI KEYRING" for each configured archive, where KEYRING is "-" if none is named. Some archives,
# such as the security archive, have no sid suite; the caller skips them.
mirrors() {
    sources=/etc/apt/sources.list.d
    cat $sources/*.sources 2>/dev/null | awk -v RS= '
        /(^|\n)Enabled:[ \t]*no/ { next }
        {
            key = "-"; uris = ""
            count = split($0, lines, "\n")
            for (i = 1; i <= count; i++) {
                words = split(lines[i], word, /[ \t]+/)
                if (word[1] == "URIs:") for (j = 2; j <= words; j++) uris = uris " " word[j]
                if (word[1] == "Signed-By:" && word[2] ~ /^\//) key = word[2]
            }
            uri_count = split(uris, uri, " ")
            for (j = 1; j <= uri_count; j++) print uri[j], key
        }'
    cat /etc/apt/sources.list $sources/*.list 2>/dev/null | awk '
        $1 == "deb" {
            key = "-"
            if (match($0, /signed-by=[^] \t]+/)) key = substr($0, RSTART + 10, RLENGTH - 10)
            sub(/\[[^]]*\][ \t]*/, "")
            print $2, key
        }'
}

# Clears the hooks: those of the machine may delete cached packages.
configure() {
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" "$dir/root"
    : >"$dir/apt/status"
    cat >"$dir/apt/apt.conf" <<CONF
Dir::State "$dir/apt";
Dir::State::lists "$dir/apt/lists";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt/cache";
Dir::Etc::sourcelist "$dir/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
APT::Sandbox::User "";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
}

private_apt() {
    apt-get -c "$dir/apt/apt.conf" -qq "$@" </dev/null >>"$dir/log" 2>&1
}

fetch_from() { # URI KEYRING
    option=
    [ "$2" = - ] || option="[signed-by=$2]"
    echo "deb $option $1 sid main" >"$dir/apt/sources.list"
    private_apt -o APT::Update::Error-Mode=any update || return 1
    (cd "$dir/debs" && private_apt download $packages)
}

unpack() {
    for deb in "$dir"/debs/*.deb; do
        dpkg -x "$deb" "$dir/root" >>"$dir/log" 2>&1 || return 1
    done
    linker=$(find "$dir/root" -name 'ld-linux*.so*' | head -n 1)
    libc=$(find "$dir/root" -name 'libc.so.6' | head -n 1)
    [ -n "$linker" ] && [ -n "$libc" ] && [ -x "$dir/root/usr/bin/du" ]
}

# Written last and renamed: an interrupted run leaves no DIR/du.
write_wrapper() {
    printf '#!/bin/sh\nexec %s --argv0 du --library-path %s %s "$@"\n' \
        "$linker" "${libc%/*}" "$dir/root/usr/bin/du" >"$dir/du.new"
    chmod 755 "$dir/du.new"
    "$dir/du.new" --version >>"$dir/log" 2>&1 && mv "$dir/du.new" "$dir/du"
}

# coreutils, and the libraries that its programs may be linked with.
packages="coreutils libc6 libselinux1 libpcre2-8-0 libacl1 libattr1 libcap2"

configure
found=no
mirrors | sort -u >"$dir/apt/mirrors"
[ -s "$dir/apt/mirrors" ] || fail "no package archive is configured"
while read -r uri keyring; do
    rm -f "$dir"/debs/*.deb
    if fetch_from "$uri" "$keyring"; then found=yes; break; fi
done <"$dir/apt/mirrors"
[ $found = yes ] || fail "no configured archive offers Debian's newest coreutils (see $dir/log)"
unpack || fail "the packages do not unpack to a du (see $dir/log)"
write_wrapper || fail "the unpacked du does not run (see $dir/log)"
rm -rf "$dir/apt/lists" "$dir/apt/cache" "$dir/debs"
