#!/usr/bin/env python3
"""Builds the trees that are measured, once, under benches/.corpora (or $FATHOM_CORPORA).

Owns the content of each tree. A tree is built under a temporary name, renamed, and only then marked
complete, so that an interrupted build is never measured. A changed RECIPE number causes a rebuild.

    real    the Linux sources as packaged by Debian: about 84,000 entries
    small   1.01 million small files in 10,000 directories, two levels deep
    five    five times that: 5.05 million entries in 50,000 directories
    fifth   a fifth of it: 204,000 entries in 2,000 directories
    wide    a million files in one directory
    fuse    a part of `real` that one thread can read through a 1 ms filesystem
    few     2,000 files in 100 directories, for programs that change the tree through that filesystem
    empty   an empty directory, to measure start-up
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("FATHOM_CORPORA", HERE / ".corpora"))

SOURCE_PACKAGE = "linux-source-6.1"
# The part of the sources that is mounted through slowfs: 1,800 entries in 148 directories, four
# levels.
FUSE_PART = "arch/mips"

SMALL_DIRECTORIES = (100, 100)
SMALL_FILES = 101
WIDE_FILES = 1_000_000
# One file in this many of `small` is a hard link to its neighbour, so that counting both links
# shows.
LINK_EVERY = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BUILDERS, []], help="which trees (default: all)")
    names = parser.parse_args().names or list(BUILDERS)
    for name in names:
        corpus(name)
        facts = facts_of(name)
        print(f"{name:6} {facts['entries']:>9,} entries  {facts['directories']:>7,} directories  {facts['origin']}")


def corpus(name):
    """Returns the path of the tree `name`. Builds it unless a complete build exists."""
    path, marker = ROOT / name, ROOT / f"{name}.json"
    recipe, build = BUILDERS[name]
    if marker.exists() and path.exists() and json.loads(marker.read_text())["recipe"] == recipe:
        return path
    marker.unlink(missing_ok=True)
    partial = ROOT / f"{name}.partial"
    for leftover in (partial, path):
        if leftover.exists():
            log(f"removing {leftover.name}")
            shutil.rmtree(leftover)
    partial.mkdir(parents=True)
    log(f"building {name}")
    origin = build(partial)
    partial.rename(path)
    os.sync()
    entries, directories = count(path)
    write_atomically(marker, {"recipe": recipe, "origin": origin, "entries": entries, "directories": directories})
    return path


def facts_of(name):
    """Returns the recorded properties of the finished tree `name`: its content and origin."""
    return json.loads((ROOT / f"{name}.json").read_text())


def count(root):
    """Returns (entries, directories) below `root`, including `root`."""
    entries = directories = 1
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as inside:
            for entry in inside:
                entries += 1
                if entry.is_dir(follow_symlinks=False):
                    directories += 1
                    pending.append(entry.path)
    return entries, directories


def build_real(target):
    with tempfile.TemporaryDirectory(dir=ROOT) as scratch:
        scratch = Path(scratch)
        version = download(SOURCE_PACKAGE, scratch)
        subprocess.run(["dpkg-deb", "-x", next(scratch.glob("*.deb")), scratch / "package"], check=True)
        archive = next((scratch / "package/usr/src").glob("*.tar.*"))
        log(f"unpacking {archive.name}")
        with tarfile.open(archive) as sources:
            # The archive is Debian's. Pythons without extraction filters trust any archive.
            sources.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
            sources.extractall(target)
    return f"Debian {SOURCE_PACKAGE} {version}"


def download(package, directory):
    """Downloads a package's .deb into `directory` and returns its version."""
    command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package]
    quiet = {"cwd": directory, "stdout": subprocess.DEVNULL}
    if subprocess.run(command, **quiet).returncode != 0:
        if os.geteuid() == 0:
            subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command, check=True, **quiet)
    archive = next(Path(directory).glob("*.deb"))
    field = ["dpkg-deb", "-f", archive, "Version"]
    return subprocess.run(field, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def build_small(target, times=1):
    outer, inner = SMALL_DIRECTORIES
    outer = round(outer * times)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        work = [(str(target / f"{index:02}"), inner, index) for index in range(outer)]
        for done, _ in enumerate(pool.imap_unordered(build_small_part, work)):
            if done % 10 == 9:
                log(f"  {done + 1} of {outer}")
    return f"generated: {outer} x {inner} directories of {SMALL_FILES} files"


def build_small_part(work):
    """Builds one of the outer directories. Its own seed makes it independent of the building
    process.
    """
    path, inner, seed = work
    pick = random.Random(seed)
    content = bytes(range(256)) * 32
    os.mkdir(path)
    for directory in range(inner):
        inside = f"{path}/{directory:02}"
        os.mkdir(inside)
        for number in range(SMALL_FILES):
            name = f"{inside}/file{number:03}.{pick.choice(('c', 'h', 'txt', 'o', 'json'))}"
            if number > 0 and pick.randrange(LINK_EVERY) == 0:
                os.link(previous, name)
            else:
                write_file(name, content[: small_size(pick)])
            previous = name


def build_five(target):
    return build_small(target, times=5)


def build_fifth(target):
    return build_small(target, times=0.2)


def small_size(pick):
    """Returns a size of 0 to 8 KiB, mostly tiny, as in a mail store or a cache of build results."""
    kind = pick.random()
    if kind < 0.10:
        return 0
    if kind < 0.90:
        return pick.randrange(1, 1024)
    return pick.randrange(1024, 8193)


def build_wide(target):
    base = f"{target}/entry-"
    for number in range(WIDE_FILES):
        write_file(f"{base}{number:07}", b"x" if number % 100 == 0 else b"")
    return f"generated: {WIDE_FILES:,} files, one in 100 of them with one byte"


def write_file(name, content):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    if content:
        os.write(fd, content)
    os.close(fd)


def build_fuse(target):
    tree = next(corpus("real").iterdir())
    shutil.copytree(tree / FUSE_PART, target / Path(FUSE_PART).name, symlinks=True)
    return f"{FUSE_PART} of real"


def build_few(target):
    for directory in range(100):
        inside = target / f"{directory // 10}" / f"{directory:02}"
        inside.mkdir(parents=True)
        for number in range(20):
            write_file(f"{inside}/file{number:02}", b"x" * number)
    return "generated: 10 x 10 directories of 20 files"


def build_empty(target):
    return "generated"


# name -> (recipe number, function that fills a directory and returns a description)
BUILDERS = {
    "real": (1, build_real),
    "small": (1, build_small),
    "five": (1, build_five),
    "fifth": (1, build_fifth),
    "wide": (1, build_wide),
    "fuse": (1, build_fuse),
    "few": (1, build_few),
    "empty": (1, build_empty),
}


def write_atomically(path, value):
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(value) + "\n")
    scratch.replace(path)


def log(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
