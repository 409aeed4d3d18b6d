#!/usr/bin/env python3
"""Divides a run of everything into shards of about equal time: SHARD=K/N names the share of this run.

    tools/shards.py STEP...     prints those of the steps that belong to this shard

tools/test-costs.txt has the seconds of processor time of each step and test program of a whole run. The longest ones go
first, each to the shard with the least. What the file does not name goes by its name, so that a new test moves nothing
else to another shard.
"""

import functools
import os
import pathlib
import sys
import zlib

COSTS = pathlib.Path(__file__).resolve().parent / "test-costs.txt"


def shard():
    """The numbers K and N of SHARD; `None` without it."""
    text = os.environ.get("SHARD")
    if not text:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        sys.exit(f"SHARD: expected K/N with K from 1 to N, found '{text}'")
    return int(number), int(count)


@functools.cache
def costs():
    lines = COSTS.read_text().splitlines() if COSTS.exists() else []
    pairs = (line.split("\t", 1) for line in lines if not line.startswith("#"))
    return {name: float(seconds) for seconds, name in pairs}


def weight(name):
    """Seconds of processor time of a step or program, 0 if they are not known."""
    return costs().get(name, 0.0)


@functools.cache
def assigned(count):
    """The number of the shard of everything that tools/test-costs.txt names."""
    loads, places = [0.0] * count, {}
    for name, seconds in sorted(costs().items(), key=lambda item: (-item[1], item[0])):
        least = loads.index(min(loads))
        places[name] = least + 1
        loads[least] += seconds
    return places


def is_mine(name):
    """Whether a step or program belongs to this run."""
    if shard() is None:
        return True
    number, count = shard()
    by_name = zlib.crc32(name.encode()) % count + 1
    return assigned(count).get(name, by_name) == number


if __name__ == "__main__":
    for step in sys.argv[1:]:
        if is_mine(step):
            print(step)
