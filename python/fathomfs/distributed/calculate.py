"""A calculator of distributed scans: hours, memory and size of the inventory.

``python -m fathomfs.distributed.calculate 1e9 --latency-ms 1 --clients 64`` prints an estimate. Its
constants are measurements of this repository; docs/scale.md compares it with the simulator.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ._trees import SLICE_NAMES

#: Entries in a second of `fathom scan` on two CPUs: 1,020,101 in 1.665 s, small files, warm
#: (benches/runs/2026-11-25-2cpu-ext4-inventory).
WARM_RATE = 613_000.0
#: Round trips for each directory besides one for each entry: 5,323 entries in 852 directories took
#: two threads 4.5 s where each operation takes 1 ms (docs/inventory.md).
DIRECTORY_TRIPS = 4.3
#: Bytes of an inventory for each entry, with names that are much alike and of kernel sources
#: (docs/benchmarks.md).
ENTRY_BYTES = (6.1, 17.0)
#: Peak memory of `fathom scan` of a million files (benches/runs/2026-11-25-2cpu-ext4-inventory).
WORKER_BYTES = 45.2 * 2**20
#: Bytes of the coordinator for each unit that waits (python/tests/test_coordinator.py measures it).
UNIT_BYTES = 400
#: Most units that waited for each worker in simulations (docs/scale.md).
UNITS_QUEUED = 40


@dataclass(frozen=True)
class Estimate:
    """An estimate of a scan."""

    hours: float
    #: Entries in a second, of all clients.
    rate: float
    #: The state of the coordinator, without Python and the engine.
    driver_bytes: int
    worker_bytes: int
    #: The size of the inventory, at least and at most.
    inventory_bytes: tuple[int, int]


def estimate(
    entries: float, directories: float = 0, latency_ms: float = 0, clients: int = 1, in_flight: int = 64
) -> Estimate:
    """Estimates a scan by `clients` machines of two CPUs, for a filesystem whose operations take
    `latency_ms`, with `in_flight` of them at once on each client. If `directories` is 0, a tenth of the
    entries are directories.

    >>> found = estimate(1e9, latency_ms=1, clients=64)
    >>> round(found.hours * 60), found.inventory_bytes[1]
    (6, 17000000000)
    """
    if entries <= 0 or directories < 0 or latency_ms < 0 or clients < 1 or in_flight < 1:
        raise ValueError("entries, clients and in_flight must be positive; others must not be negative")
    trips = 1 + DIRECTORY_TRIPS * (directories / entries or 0.1)
    rate = WARM_RATE if latency_ms == 0 else min(WARM_RATE, in_flight * 1000 / latency_ms / trips)
    seconds = entries / (rate * clients) + end_s(rate, clients)
    return Estimate(
        seconds / 3600,
        entries / seconds,
        UNIT_BYTES * UNITS_QUEUED * clients,
        int(WORKER_BYTES),
        (int(entries * ENTRY_BYTES[0]), int(entries * ENTRY_BYTES[1])),
    )


def end_s(rate: float, clients: int) -> float:
    """Seconds that are lost at the beginning and at the end, where units are few. A unit cannot be
    divided below one slice of a directory; the factor is fitted to the simulator."""
    return 0.0 if clients == 1 else SLICE_NAMES / rate * (1 + 0.8 * math.log2(clients))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Prints the estimate as JSON."""
    parser = argparse.ArgumentParser(prog="python -m fathomfs.distributed.calculate", description=__doc__)
    parser.add_argument("entries", type=float)
    parser.add_argument("--directories", type=float, default=0, help="default: a tenth of the entries")
    parser.add_argument("--latency-ms", type=float, default=0, help="time of one operation")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--in-flight", type=int, default=64, help="operations at once on each client")
    options = parser.parse_args(arguments)
    try:
        found = estimate(**vars(options))
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
