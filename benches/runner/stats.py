"""Medians, paired ratios and their bootstrap intervals. Pure."""

import math
import statistics
from dataclasses import dataclass

DRAWS = 10_000


@dataclass(frozen=True)
class Ratio:
    """Median of the within-block ratios, with a 95 % interval from resampling blocks."""

    value: float
    low: float
    high: float
    pairs: int

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def median_s(samples):
    """Median seconds of a mapping block -> sample."""
    return statistics.median(sample.seconds for sample in samples.values())


def ratio(above, below, random):
    """How many times longer `above` took than `below`, block by block; None without a common block."""
    blocks = sorted(above.keys() & below.keys())
    logs = [math.log(above[block].seconds / below[block].seconds) for block in blocks]
    if not logs:
        return None
    medians = sorted(statistics.median(random.choices(logs, k=len(logs))) for _ in range(DRAWS))
    low, high = medians[int(DRAWS * 0.025)], medians[int(DRAWS * 0.975)]
    return Ratio(math.exp(statistics.median(logs)), math.exp(low), math.exp(high), len(logs))
