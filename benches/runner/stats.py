"""Medians, paired ratios and their bootstrap intervals. No I/O."""

import math
import statistics
from dataclasses import dataclass

DRAWS = 10_000


@dataclass(frozen=True)
class Ratio:
    """Median of the ratios within blocks, with a 95 % interval from resampling blocks."""

    value: float
    low: float
    high: float
    pairs: int

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio_of(above, below, random):
    """Returns the paired ratio of two mappings block -> number."""
    blocks = sorted(above.keys() & below.keys())
    logs = [math.log(above[block] / below[block]) for block in blocks]
    if not logs:
        return None
    return Ratio(*(math.exp(log) for log in interval(logs, random)), len(logs))


def interval(values, random):
    """Returns (median, low, high): the median with a 95 % interval from resampling."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(DRAWS))
    return statistics.median(values), medians[int(DRAWS * 0.025)], medians[int(DRAWS * 0.975)]
