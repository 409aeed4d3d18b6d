"""Pictures of simulated scans, for docs/scale.md: ``simulate --plot DIR``. Needs matplotlib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ._trees import SHAPES
from .simulate import Model, simulate

#: Workers of the pictures.
WORKERS = (1, 8, 64, 256)
#: Entries of the trees of a fixed size.
SIZES = (10**8, 10**9, 10**10)


def draw(out: Path, workers: Sequence[int] = WORKERS, clusters: int = 100_000) -> None:
    """Makes both pictures in the directory `out`, and prints the numbers in them."""
    shapes: dict[str, list[tuple[float, float]]] = {}
    for shape in SHAPES:
        for count in workers:
            entries = int(300 * count * Model.rate)
            point = count, _share(shape, entries, count, clusters)
            shapes.setdefault(shape, []).append(point)
    plot(out / "scale-shapes.svg", "300 s of work for each worker", "share of the ideal rate", shapes)
    sizes: dict[str, list[tuple[float, float]]] = {}
    for entries in SIZES:
        for count in workers:
            point = count, _share("skewed", entries, count, clusters)
            sizes.setdefault(f"{entries:,} entries", []).append(point)
    plot(out / "scale-sizes.svg", "A skewed tree of a fixed size", "share of the ideal rate", sizes)


def _share(shape: str, entries: int, workers: int, clusters: int) -> float:
    result = simulate(shape, entries, Model(workers=workers), clusters)
    figures = [round(result.share, 3), round(result.share_max, 3), round(result.seconds)]
    counts = [result.units, result.queued_max]
    print(json.dumps([shape, entries, workers, *figures, *counts]), flush=True)
    return result.share


def plot(path: Path, title: str, label: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draws one line for each series over the number of workers, as SVG that is always the same."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "fathom", "svg.fonttype": "none", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.6, 3.6))
    colors = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#59636e")
    for (name, points), color in zip(series.items(), colors):
        axes.plot(*zip(*points), marker="o", markersize=4, color=color, label=name)
    axes.set_xscale("log", base=2)
    ticks = sorted({workers for points in series.values() for workers, _ in points})
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.set(title=title, xlabel="workers", ylabel=label, ylim=(0, None))
    axes.grid(color="#d8dee4")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
