"""Charts of docs/reproduce.md: the tables of that page, each value relative to the row that the comparison is about, as
published and as measured here.

`python3 benches/pictures.py` writes them. Standard library only.
"""

import math
import pathlib
from dataclasses import dataclass
from html import escape

GUIDE = pathlib.Path(__file__).resolve().parent.parent / "docs/reproduce.md"
# The pixels of a factor of two, and the factors that the axis has room for.
DOUBLE, LEAST, MOST = 52, 1 / 8, 64


@dataclass(frozen=True)
class Comparison:
    """A table of the guide. Values are divided by those of the row `base`."""

    name: str
    title: str
    # The beginning of the header line.
    header: str
    base: str
    # Pairs of columns: the text beside the bars, the published column, and the one of this machine.
    columns: tuple
    more_is_better: bool = False


COMPARISONS = (
    Comparison(
        "reproduce-du.svg",
        "time of du -s relative to GNU du",
        "| command | published, warm |",
        "du -s DIR",
        (("warm", "published, warm", "here, warm"), ("cold", "published, cold", "here, cold")),
    ),
    Comparison(
        "reproduce-walk.svg",
        "time of a walk with output relative to find",
        "| command | published, with output |",
        "find DIR",
        (("", "published, with output", "here, with output, s"),),
    ),
    Comparison(
        "reproduce-serve.svg",
        "requests per second relative to blocking reads",
        "| arm | published, requests/s |",
        "sync",
        (("", "published, requests/s", "here, requests/s"),),
        more_is_better=True,
    ),
    Comparison(
        "reproduce-write.svg",
        "time to write 1 GiB relative to blocking calls, rings that sleep",
        "| arm | published, Go |",
        "blocking",
        (("", "published, Zig", "here"),),
    ),
)


def cells(line):
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def value(text):
    """Returns a number of a table, of minutes and seconds in seconds; `None` for an empty cell."""
    if not text:
        return None
    minutes, _, seconds = text.rpartition(":")
    return float(seconds.replace(",", "")) + 60 * float(minutes or 0)


def table(text, header):
    """Returns the rows of the table whose header begins with `header`, by their first cell."""
    lines = iter(text.splitlines())
    names = next((cells(line) for line in lines if line.startswith(header)), None)
    if names is None:
        raise ValueError(f"no table with the header '{header}'")
    next(lines)
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        row = cells(line)
        rows[row[0]] = dict(zip(names, row, strict=True))
    return rows


def ratios(comparison, text):
    """Yields a label and the two ratios of each pair of bars; `None` where the table has no number."""
    rows = table(text, comparison.header)
    for name, row in rows.items():
        for what, *columns in comparison.columns:
            both = [value(row[column]) for column in columns]
            bases = [value(rows[comparison.base][column]) for column in columns]
            if name != comparison.base and any(both):
                yield f"{name}, {what}" if what else name, [one and one / base for one, base in zip(both, bases)]


def chart(comparison, svg, sans, text=None):
    """Returns the chart as SVG: bars from the line of the base, to the left for less and to the right for more."""
    text = GUIDE.read_text(encoding="utf-8") if text is None else text
    label, row, y = 330, 15, 34
    line = label + 20 + DOUBLE * math.log2(1 / LEAST)
    better = "more" if comparison.more_is_better else "less"
    title = f"{comparison.title}: ×1 is the same, {better} is better"
    body = [f'<text x="16" y="22" class="title">{escape(title)}</text>']
    top = y
    for name, both in ratios(comparison, text):
        body.append(f'<text x="{label}" y="{y + row + 4}" class="name">{escape(name)}</text>')
        for kind, ratio in zip(("published", "here"), both):
            if ratio is not None:
                length = DOUBLE * math.log2(min(max(ratio, LEAST), MOST))
                left = line + min(length, 0)
                body.append(
                    f'<rect x="{left:.1f}" y="{y + 2}" width="{max(abs(length), 1.0):.1f}" height="{row - 3}" class="{kind}"/>'
                    f'<text x="{max(line, line + length) + 6:.1f}" y="{y + row - 3}" class="value">×{ratio:.2f}</text>'
                )
            y += row
        y += 8
    body.append(f'<path d="M{line:.1f} {top}V{y}" stroke="#1f2328" fill="none"/>')
    y += 16
    for at, kind in ((label, "published"), (label + 110, "here")):
        body.append(f'<rect x="{at}" y="{y - 10}" width="12" height="12" class="{kind}"/>')
        body.append(f'<text x="{at + 18}" y="{y}" class="value">{kind}</text>')
    style = (
        f"text{{font:12px {sans};fill:#1f2328}}.title{{font-weight:600;font-size:13px}}"
        ".name{text-anchor:end}.value{fill:#59636e}.here{fill:#0969da}.published{fill:#afb8c1}"
    )
    width = int(line + DOUBLE * math.log2(MOST) + 60)
    return svg(width, y + 14, "#ffffff", style, body)
