"""Trees of the simulator: clusters of directories, whose entries are only counted."""

from __future__ import annotations

import random
from dataclasses import dataclass

#: Names of a directory for each of its slices, and most entries of a cluster that is not sliced.
SLICE_NAMES = 65_536
#: The shapes that `grow` knows.
SHAPES = ("random", "skewed", "flat", "chains", "wide")


@dataclass(frozen=True)
class Tree:
    """Clusters of directories. A parent has a smaller number than its children; 0 is the root."""

    parents: list[int]
    children: list[list[int]]
    #: Entries of each cluster.
    entries: list[int]
    #: The cluster that is one directory with very many names, if there is one.
    wide: int | None

    @property
    def total(self) -> int:
        """The number of entries."""
        return sum(self.entries)

    @property
    def longest_path(self) -> int:
        """Most entries on one path: they are read one after another, by any number of workers."""
        below = [0] * len(self.entries)
        for cluster in range(len(below) - 1, -1, -1):
            own = 0 if cluster == self.wide else self.entries[cluster]
            below[cluster] += own
            parent = self.parents[cluster]
            if cluster and below[parent] < below[cluster]:
                below[parent] = below[cluster]
        return below[0]


def grow(shape: str, entries: int, clusters: int, seed: int, wide_names: int = 10_000_000) -> Tree:
    """Makes a tree of about `entries` entries.

    random: the parent of a cluster is any earlier one. skewed: 200 such trees whose sizes follow
    Zipf's law, with clusters that follow the 80/20 law. flat: one directory has all clusters.
    chains: a cluster is 9 times in 10 the child of the one before. wide: random, with one directory
    that has `wide_names` entries, but at most half of all.

    >>> tree = grow("wide", 10**8, 1000, seed=1)
    >>> tree.total, tree.entries[tree.wide]
    (100000000, 10000000)
    """
    rng = random.Random(f"{shape} {seed}")
    if shape not in SHAPES:
        raise ValueError(f"shape '{shape}': must be one of {', '.join(SHAPES)}")
    parents = _parents(shape, clusters, rng)
    pareto = shape == "skewed"
    weights = [rng.paretovariate(1.16) if pareto else rng.expovariate(1.0) for _ in parents]
    few = entries - min(wide_names, entries // 2) if shape == "wide" else entries
    counts = _apportion(weights, few)
    wide = None
    if shape == "wide":
        wide = len(parents)
        parents.append(rng.randrange(wide))
        counts.append(entries - few)
    _divide(parents, counts, wide)
    children: list[list[int]] = [[] for _ in parents]
    for cluster in range(1, len(parents)):
        children[parents[cluster]].append(cluster)
    return Tree(parents, children, counts, wide)


def _parents(shape: str, clusters: int, rng: random.Random) -> list[int]:
    if shape == "flat":
        return [0] * clusters
    if shape == "chains":
        return [max(0, i - 1) if rng.random() < 0.9 else rng.randrange(max(1, i)) for i in range(clusters)]
    if shape != "skewed":
        return [rng.randrange(max(1, i)) for i in range(clusters)]
    trees: list[list[int]] = [[i + 1] for i in range(min(200, clusters - 1))]
    parents = [0] * (1 + len(trees))
    picks = rng.choices(trees, [1 / (i + 1) for i in range(len(trees))], k=clusters - len(parents))
    for tree in picks:
        tree.append(len(parents))
        parents.append(tree[rng.randrange(len(tree) - 1)])
    return parents


def _apportion(weights: list[float], entries: int) -> list[int]:
    """Shares `entries` out by weight, without losing one."""
    total, so_far, counts, given = sum(weights), 0.0, [], 0
    for weight in weights:
        so_far += weight
        until = min(entries, round(entries * so_far / total))
        counts.append(until - given)
        given = until
    counts[-1] += entries - given
    return counts


def _divide(parents: list[int], counts: list[int], wide: int | None) -> None:
    """Makes siblings of a cluster that has more entries than a directory without slices."""
    for cluster in range(1, len(parents)):
        if counts[cluster] <= SLICE_NAMES or cluster == wide:
            continue
        parts = -(-counts[cluster] // SLICE_NAMES)
        whole = counts[cluster]
        counts[cluster] = whole // parts
        for part in range(1, parts):
            parents.append(parents[cluster])
            counts.append(whole * (part + 1) // parts - whole * part // parts)
