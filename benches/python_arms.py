#!/usr/bin/env python3
"""One arm of `python.py`, as a process: runs once for each line on standard input, and prints what
it took as JSON.

Owns what is timed, and the answer of each arm. An answer is made of the result after the timing. The
first run also imports modules, so it is not to be counted.
"""

import sys

# Modules of benches/ have names of the standard library's builtins. Workers of a cluster import this
# file, too, with another path.
if __name__ == "__main__":
    sys.path.pop(0)

import gc
import hashlib
import json
import os
import resource
import time


def scandir_stat(tree, _out):
    """Path, size and time of every entry as columns, with the standard library."""
    paths, sizes, times, pending = [], [], [], [tree]
    while pending:
        with os.scandir(pending.pop()) as inside:
            for entry in inside:
                meta = entry.stat(follow_symlinks=False)
                paths.append(entry.path)
                sizes.append(meta.st_size)
                times.append(meta.st_mtime_ns)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return paths, sizes, times


def scandir_to_polars(tree, out):
    """The same columns as a DataFrame."""
    import polars

    path, size, mtime = scandir_stat(tree, out)
    frame = polars.DataFrame({"path": path, "size": size, "mtime": mtime})
    return frame.with_columns(polars.from_epoch("mtime", "ns").dt.cast_time_unit("us").dt.replace_time_zone("UTC"))


def to_polars(tree, _out):
    """The same DataFrame."""
    import fathomfs
    import polars

    return polars.DataFrame(fathomfs.list(tree, columns=["path", "size", "mtime"]))


def to_polars_by_one(tree, _out):
    """The same DataFrame, by one thread."""
    import fathomfs
    import polars

    return polars.DataFrame(fathomfs.list(tree, columns=["path", "size", "mtime"], threads=1))


def first_batch(tree, _out):
    """The first entries, after which the walk ends."""
    import fathomfs

    with fathomfs.list(tree, columns=["path", "size", "mtime"]) as entries:
        return next(entries)


def fsspec_local():
    from fsspec.implementations.local import LocalFileSystem

    return LocalFileSystem()


def our_local():
    from fathomfs.fsspec import LocalFileSystem

    return LocalFileSystem()


def fathom_du(tree, _out):
    import fathomfs

    return fathomfs.du(tree)


def fathom_list(tree, _out):
    import fathomfs

    return sum(len(batch) for batch in fathomfs.list(tree, columns=["path"]))


def fathom_scan(tree, out):
    import fathomfs

    return fathomfs.scan(tree, out)


def fathom_scan_of_two(tree, out):
    import fathomfs

    return fathomfs.scan(tree, out, threads=2)


def cluster_scan(workers, threads):
    """The scan by processes of a cluster of Dask, which stays from run to run."""

    def scan(tree, out):
        import distributed
        import fathomfs.distributed

        if not CLIENTS:
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            )
            CLIENTS.append(distributed.Client(cluster))
        return fathomfs.distributed.scan(tree, out, executor=CLIENTS[0], threads=threads)

    return scan


def processes_scan(tree, out):
    import fathomfs.distributed

    return fathomfs.distributed.scan(tree, out, executor="processes", workers=2, threads=1)


def peaks():
    """The peak resident sets of this process and of the largest child that has ended."""
    mib = {who: resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)}
    return {"driver_mib": mib[resource.RUSAGE_SELF], "worker_mib": mib[resource.RUSAGE_CHILDREN]}


def paths_answer(rows):
    """Returns the number of rows and a hash of them in order."""
    digest = hashlib.sha256()
    count = 0
    for row in sorted(rows):
        digest.update(repr(row).encode())
        count += 1
    return [count, digest.hexdigest()[:16]]


def frame_answer(frame):
    return paths_answer(zip(frame["path"], frame["size"], frame["mtime"].dt.epoch("us")))


def columns_answer(columns):
    paths, sizes, times = columns
    return paths_answer(zip(paths, sizes, (time // 1000 for time in times)))


def infos_answer(infos):
    return paths_answer((name, *sorted(info.items())) for name, info in infos.items())


# The client of the cluster, once there is one.
CLIENTS = []

# name -> (what is timed, answer of its result)
ARMS = {
    "fsspec du": (lambda tree, _: fsspec_local().du(tree), lambda total: total),
    "ff.du": (fathom_du, lambda usage: usage.apparent),
    "ff.du, bytes": (fathom_du, lambda usage: usage.bytes),
    "our du": (lambda tree, _: our_local().du(tree), lambda total: total),
    "scandir + stat": (scandir_stat, columns_answer),
    "scandir + stat to Polars": (scandir_to_polars, frame_answer),
    "ff.list to Polars": (to_polars, frame_answer),
    "ff.list to Polars, 1 thread": (to_polars_by_one, frame_answer),
    "ff.list, first batch": (first_batch, lambda batch: len(batch) > 0),
    "fsspec find": (lambda tree, _: fsspec_local().find(tree, detail=True), infos_answer),
    "our find": (lambda tree, _: our_local().find(tree, detail=True), infos_answer),
    "ff.list": (fathom_list, lambda rows: rows),
    "ff.scan": (fathom_scan, lambda inventory: len(inventory)),
    "ff.scan, 2 threads": (fathom_scan_of_two, lambda inventory: len(inventory)),
    "distributed.scan, 2 processes": (cluster_scan(2, 1), lambda inventory: len(inventory)),
    "distributed.scan, 1 worker": (cluster_scan(1, 2), lambda inventory: len(inventory)),
    "distributed.scan, 4 workers": (cluster_scan(4, 2), lambda inventory: len(inventory)),
    "distributed.scan, 2 processes of the package": (processes_scan, lambda inventory: len(inventory)),
}


def main():
    name, tree = sys.argv[1:]
    run, answer = ARMS[name]
    for line in sys.stdin:
        options = json.loads(line)
        gc.collect()
        begin, begin_cpu = time.perf_counter(), time.process_time()
        result = run(tree, options["out"])
        took = {"seconds": time.perf_counter() - begin, "cpu_s": time.process_time() - begin_cpu}
        took |= peaks()
        if options["answer"]:
            took["answer"] = answer(result)
        del result
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
