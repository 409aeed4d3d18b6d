"""Prints, as JSON, the statistics by numpy and scipy of each sample in the JSON file argv[1]."""

import json
import sys

import numpy
from scipy import stats

CONFIDENCE = 0.95


def exact(values):
    """Returns the bootstrap interval of the median in the limit of infinitely many draws.

    Returns None if 10,000 draws may find another interval, and for an even number of values.
    """
    count = len(values)
    if count % 2 == 0:
        return None
    # The median of a draw is at most the k-th smallest value if more than half of the draw are.
    below = [stats.binom.sf(count // 2, count, rank / count) for rank in range(1, count + 1)]
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    # Four standard errors of a proportion in 10,000 draws.
    if any(abs(share - tail) < 4 * (tail * (1 - tail) / 1e4) ** 0.5 for share in below for tail in tails):
        return None
    return [sorted(values)[next(i for i, share in enumerate(below) if share >= tail)] for tail in tails]


def sign(values):
    """Returns the sign test interval of the median, or the range of the values if there is none."""
    low, high = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    return [min(values), max(values)] if numpy.isnan([low, high]).any() else [low, high]


def bootstrap(values):
    """Returns lower and upper bounds for both ends of the bootstrap interval of the median.

    The bounds allow for the random error of 20,000 draws here and of 10,000 in the tested program.
    """
    if len(values) < 2:
        return None
    found = stats.bootstrap((values,), numpy.median, n_resamples=20000, method="percentile", rng=1)
    tail = (1 - CONFIDENCE) / 2
    chance = 4 * (tail * (1 - tail) * (1 / 1e4 + 1 / 2e4)) ** 0.5
    shares = [tail - chance, tail + chance, 1 - tail - chance, 1 - tail + chance]
    return list(numpy.quantile(found.bootstrap_distribution, shares, method="inverted_cdf"))


def report(values):
    return {
        "median": numpy.median(values),
        "percentiles": list(numpy.percentile(values, [50, 95, 99], method="inverted_cdf")),
        "sign": sign(values),
        "exact": exact(values),
        "bootstrap": bootstrap(values),
    }


with open(sys.argv[1], encoding="utf-8") as file:
    print(json.dumps([report(values) for values in json.load(file)]))
