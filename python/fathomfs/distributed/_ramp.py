"""The number of workers that read a network filesystem: doubled while its latency holds."""

from __future__ import annotations

import os
import statistics

#: The number of workers at the start.
FIRST = 2
#: The budget of units while the number grows, in seconds: it is doubled after so many units.
BUDGET_S = 5.0
#: The number is doubled while the median latency is at most this many times the lowest so far.
HOLDS = 1.5
#: The number is halved if the median latency is more than this many times the lowest so far.
STORM = 3.0
#: Fewest entries of a unit that says something about the storage.
ENTRIES_MIN = 1000

#: Filesystems that other machines serve, by their names in mountinfo.
NETWORK = frozenset("9p afs beegfs ceph cifs gpfs lustre nfs nfs4 orangefs panfs smb3 wekafs".split())


class Ramp:
    """Bounds the number of workers.

    >>> ramp = Ramp(first=2)
    >>> for _ in range(2):
    ...     ramp.observe(100.0)
    >>> ramp.limit
    4
    >>> for _ in range(4):
    ...     ramp.observe(900.0)
    >>> ramp.limit
    2
    """

    def __init__(self, first: int) -> None:
        self.limit = first
        self._lowest = float("inf")
        self._window: list[float] = []

    def observe(self, latency_us: float) -> None:
        """Takes the latency of an operation, as a unit that has ended has seen it."""
        self._window.append(latency_us)
        if len(self._window) < self.limit:
            return
        median = statistics.median(self._window)
        self._window.clear()
        self._lowest = min(self._lowest, median)
        if median <= HOLDS * self._lowest:
            self.limit *= 2
        elif median > STORM * self._lowest:
            self.limit = max(1, self.limit // 2)


def filesystem(path: bytes, mountinfo: str = "/proc/self/mountinfo") -> str | None:
    """Returns the type of the filesystem that has ``path``, by proc_pid_mountinfo(5)."""
    try:
        real = os.path.realpath(path)
        device = os.stat(real).st_dev
        with open(mountinfo, "rb") as file:
            mounts = [line.split(b" ") for line in file]
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    for fields in mounts:
        if fields[2] == number:
            return os.fsdecode(fields[fields.index(b"-") + 1])
    return None
