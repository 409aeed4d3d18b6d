"""The files that `serve.py` requests, as trees beside those of corpora.py, and the lists of their
paths.

    www     one file of each size that is requested hot
    many    65,536 files of 4 KiB in 256 directories, for a slow mount
    listed  100,000 empty files in one directory
    cold    files of 1 MiB, by default 10 GiB together

The servers serve their common parent directory, corpora.ROOT, so that one server has hot and cold
files.
"""

import random
import shutil

import corpora

HOT_BYTES = (716, 4096, 65536, 1 << 20)
SMALL_DIRECTORIES, SMALL_FILES, SMALL_BYTES = 256, 256, 4096
LISTED_FILES = 100_000
COLD_BYTES, COLD_FILES = 1 << 20, 64
# Disk space that stays free.
MARGIN_GIB = 4


def register(cold_gib):
    """Registers the trees with corpora.py; `cold` holds `gib` GiB."""
    cold_files = max(COLD_FILES, round(cold_gib * (1 << 30) / COLD_BYTES))
    corpora.BUILDERS.update(
        www=(1, build_www),
        many=(1, build_many),
        listed=(1, build_listed),
        cold=(f"1, {cold_files} files", lambda target: build_cold(target, cold_files)),
    )


def cold_gib_max(root):
    """Returns the GiB available to the cold set: free space plus the space of an existing set."""
    root.mkdir(parents=True, exist_ok=True)
    kept = sum(file.stat().st_blocks * 512 for file in (root / "cold").rglob("*"))
    return max(0.0, (shutil.disk_usage(root).free + kept) / (1 << 30) - MARGIN_GIB)


def build_www(target):
    for size in HOT_BYTES:
        corpora.write_file(target / hot_name(size), random.Random(size).randbytes(size))
    return f"generated: files of {', '.join(f'{size:,}' for size in HOT_BYTES)} bytes"


def hot_name(size):
    """Large files are rarely text."""
    return f"{size}.{'html' if size < 1 << 16 else 'jpg'}"


def build_many(target):
    fill(target, SMALL_DIRECTORIES, SMALL_FILES, SMALL_BYTES)
    return f"generated: {SMALL_DIRECTORIES} directories of {SMALL_FILES} files of {SMALL_BYTES:,} bytes"


def build_listed(target):
    for number in range(LISTED_FILES):
        (target / f"file-{number:06}.txt").touch()
    return f"generated: {LISTED_FILES:,} empty files in one directory"


def build_cold(target, files):
    fill(target, -(-files // COLD_FILES), COLD_FILES, COLD_BYTES)
    return f"generated: files of {COLD_BYTES:,} bytes, {files * COLD_BYTES / (1 << 30):.2f} GiB together"


def fill(target, directories, files, size):
    """Returns bytes that differ from file to file and are incompressible for every filesystem."""
    for directory in range(directories):
        (target / f"{directory:03}").mkdir()
        for number in range(files):
            content = random.Random(directory * files + number).randbytes(size)
            corpora.write_file(target / f"{directory:03}/{number:03}.html", content)


def paths(name):
    """Returns the sorted paths of the files of a tree, relative to the tree."""
    tree = corpora.corpus(name)
    return sorted(str(file.relative_to(tree)) for file in tree.rglob("*.html"))
