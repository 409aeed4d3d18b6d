#!/usr/bin/env python3
"""Makes the pictures of the README and the documents: `fathom explore` and `fathom du --tree` of a directory, a chart of
the published runs, and charts of docs/reproduce.md.

    python3 benches/pictures.py --fathom target/release/fathom [--tree DIR] [--out docs/pictures]

The first chart has the medians of the run directories that `PANELS` names; `reproduced.py` makes the others. The rest is
what the programs show, the explorer in a terminal of tmux. Standard library only.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from html import escape

import reproduced

TOP = pathlib.Path(__file__).resolve().parent.parent
RUNS = TOP / "benches/runs"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Panel:
    """Bars of one case of a run. `arms` maps a label to the name of an arm in run.json or raw.csv."""

    title: str
    unit: str
    run: str
    case: str
    arms: dict
    # The column of the arm's name, and the figure of a run that has several.
    column: str = "arm"
    figure: str = ""
    more_is_better: bool = False
    scale: float = 1.0


PANELS = (
    Panel(
        "du -s, 1.01 M small files, warm",
        "s",
        "2026-11-21-2cpu-ext4-4",
        "small-warm",
        {
            "floor in C": "floor 64 thr, chunk 256",
            "fathom du": "fathom",
            "pdu": "pdu",
            "diskus": "diskus",
            "dust": "dust",
            "GNU du": "GNU du",
            "gdu": "gdu",
            "dua": "dua",
        },
    ),
    Panel(
        "du -s, 1,794 entries, 1 ms an operation (as over a network)",
        "s",
        "2026-11-21-2cpu-ext4-10",
        "fuse",
        {"floor in C": "floor 64 thr, chunk 1", "fathom du": "fathom", "diskus": "diskus", "GNU du": "GNU du"},
    ),
    Panel(
        "names of 1.01 M small files, warm",
        "s",
        "2026-11-24-2cpu-ext4-list",
        "small-warm",
        {
            "floor in C": "floor 2 thr",
            "fathom list": "fathom list --order any",
            "fdf": "fdf",
            "bfs": "bfs",
            "fd": "fd",
            "find": "find",
        },
    ),
    Panel(
        "4 KiB files served, hot, 1 CPU",
        "k requests/s",
        "2026-11-23-2cpu-ext4-serve",
        "hot-4k",
        {
            "fathom serve": "fathom",
            "nginx": "nginx",
            "static-web-server": "static-web-server",
            "miniserve": "miniserve",
        },
        column="server",
        figure="requests_s",
        more_is_better=True,
        scale=1000.0,
    ),
)


def rows_of(run):
    """Returns the samples of a run: of `run.json`, which `fathom bench run` has written, or of `raw.csv`."""
    if (run / "run.json").exists():
        samples = json.loads((run / "run.json").read_text(encoding="utf-8"))["rows"]
        counted = [sample for sample in samples if not sample["discarded"]]
        return [{"case": sample["cell"], "arm": sample["method"], "seconds": sample["seconds"]} for sample in counted]
    with open(run / "raw.csv", newline="", encoding="utf-8") as raw:
        return list(csv.DictReader(raw))


def median(panel, arm, runs=RUNS):
    """Returns the median of an arm in the unit of the panel."""
    rows = [row for row in rows_of(runs / panel.run) if row["case"] == panel.case and row[panel.column] == arm]
    if panel.figure:
        rows = [row for row in rows if row["figure"] == panel.figure]
    if not rows:
        raise ValueError(f"{panel.run}: no runs of '{arm}' in case {panel.case}")
    values = [float(row["value" if panel.figure else "seconds"]) for row in rows]
    return statistics.median(values) / panel.scale


def number(value):
    """Returns a number with three significant digits, or whole above 100."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def chart(panels=PANELS, runs=RUNS):
    """Returns the chart of `panels` as SVG. Bars of one panel have one scale."""
    width, label, bar, row = 760, 150, 500, 20
    body, y = [], 12
    for panel in panels:
        y += 22
        better = "more is better" if panel.more_is_better else "less is better"
        title = f"{panel.title}; {panel.unit}, {better}"
        body.append(f'<text x="16" y="{y}" class="title">{escape(title)}</text>')
        y += 10
        values = {name: median(panel, arm, runs) for name, arm in panel.arms.items()}
        values = dict(sorted(values.items(), key=lambda item: item[1], reverse=panel.more_is_better))
        most = max(values.values())
        for name, value in values.items():
            kind = "ours" if name.startswith("fathom") else "floor" if name.startswith("floor") else "rival"
            length = max(1.0, bar * value / most)
            body.append(
                f'<text x="{label}" y="{y + 14}" class="name">{escape(name)}</text>'
                f'<rect x="{label + 8}" y="{y + 3}" width="{length:.1f}" height="{row - 6}" class="{kind}"/>'
                f'<text x="{label + 14 + length:.1f}" y="{y + 14}" class="value">{number(value)}</text>'
            )
            y += row
        y += 8
    style = (
        f"text{{font:12px {SANS};fill:#1f2328}}.title{{font-weight:600;font-size:13px}}"
        ".name{text-anchor:end}.value{fill:#59636e}.ours{fill:#0969da}.rival{fill:#afb8c1}.floor{fill:#d8dee4}"
    )
    return svg(width, y + 8, "#ffffff", style, body)


def svg(width, height, background, style, body):
    frame = f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6" fill="{background}" stroke="#d1d9e0"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, f"<style>{style}</style>", frame, *body, "</svg>", ""])


# Cells of a terminal, in pixels.
CELL, LINE = 8.4, 18
SGR = re.compile("\x1b\\[([0-9;]*)m|\x1b\\[K|\r")
COLORS = {"1": "red", "2": "green", "3": "yellow", "4": "blue"}
MODES = {"1": "bold", "2": "dim", "7": "reverse"}
EIGHTHS = {chr(0x2588 + n): (8 - n) / 8 for n in range(8)}
# Strokes of box-drawing characters from the centre of a cell: up, down, right, left.
STROKES = {"─": "rl", "│": "ud", "├": "udr", "└": "ur", "┌": "dr"}


def terminal(text, title):
    """Returns the output of a program, with escape sequences of colours, as SVG."""
    body = [f'<text x="16" y="24" class="dim">{escape("$ " + title)}</text>']
    columns, style = len(title) + 2, frozenset()
    for index, line in enumerate(text.rstrip("\n").split("\n")):
        column, at, top = 0, 0, 34 + index * LINE
        for match in [*SGR.finditer(line), None]:
            piece = line[at : match.start() if match else len(line)]
            if "reverse" in style and piece:
                width = len(piece) * CELL
                body.append(f'<rect x="{16 + column * CELL:.1f}" y="{top}" width="{width:.1f}" height="{LINE}" class="bar"/>')
            body.extend(cells(piece, column, top, " ".join(sorted(style))))
            column += len(piece)
            if match:
                at = match.end()
                style = styled(style, match.group(1)) if match.group().endswith("m") else style
        columns = max(columns, column)
        lines = index + 1
    style = (
        f"text{{font:14px {FONT};fill:#e6edf3;white-space:pre}}.green{{fill:#3fb950}}"
        ".dim{fill:#9198a1}.blue{fill:#79c0ff}.red{fill:#ff7b72}.yellow{fill:#e3b341}.bold{font-weight:600}"
        ".bar{fill:#30363d}path{stroke:#9198a1;fill:none}"
    )
    return svg(round(32 + columns * CELL), 46 + lines * LINE, "#0d1117", style, body)


def styled(style, codes):
    """Returns the classes after the codes of an escape sequence (ECMA-48, SGR), whose backgrounds are left out."""
    codes = (codes or "0").split(";")
    while codes:
        code = codes.pop(0)
        if code == "0":
            style = frozenset()
        elif code in ("38", "48"):
            color = COLORS.get(codes[1], "")
            del codes[:2]
            style = style - set(COLORS.values()) | {color} - {""} if code == "38" else style
        elif code == "39" or (len(code) == 2 and code[0] == "3"):
            style = style - set(COLORS.values()) | {COLORS.get(code[1], "")} - {""}
        elif code in MODES:
            style |= {MODES[code]}
    return style


def cells(piece, column, top, style):
    """Draws characters of one style. Blocks and lines are shapes, so that no font leaves gaps."""
    for word in re.finditer("[█-▏]+|[─│├└┌]|[^ █-▏─│├└┌]+(?: [^ █-▏─│├└┌]+)*", piece):
        x, text = 16 + (column + word.start()) * CELL, word.group()
        if text[0] in EIGHTHS:
            length = sum(EIGHTHS[block] for block in text) * CELL
            yield f'<rect x="{x:.1f}" y="{top + 2}" width="{length:.1f}" height="{LINE - 4}" class="{style}"/>'
        elif text in STROKES:
            middle = (x + CELL / 2, top + LINE / 2)
            ends = {"u": f"V{top}", "d": f"V{top + LINE}", "r": f"H{x + CELL:.1f}", "l": f"H{x:.1f}"}
            strokes = "".join(f"M{middle[0]:.1f} {middle[1]:.1f}{ends[side]}" for side in STROKES[text])
            yield f'<path d="{strokes}"/>'
        else:
            wide = f' textLength="{len(text) * CELL:.1f}"'
            yield f'<text x="{x:.1f}" y="{top + 13}" class="{style}"{wide}>{escape(text)}</text>'


def tree(fathom, directory):
    """Returns the picture of `fathom du --tree` of a directory."""
    environment = {**os.environ, "COLUMNS": "76", "LINES": "19", "LC_ALL": "C.UTF-8"}
    command = [fathom, "du", "--tree", "--color=always", directory]
    shown = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return terminal(shown.stdout.decode(), f"fathom du --tree {directory}")


def explorer(fathom, directory):
    """Returns the picture of `fathom explore` of a directory, once it has been read and two rows are marked."""
    tmux = ["tmux", "-L", f"fathom-pictures-{os.getpid()}"]

    def ask(*words):
        return subprocess.run([*tmux, *words], stdout=subprocess.PIPE, check=True).stdout.decode()

    def wait_for(text):
        """Waits until the screen has a text, and has been the same for two seconds."""
        last, since = "", time.monotonic()
        for _ in range(600):
            shown = ask("capture-pane", "-p")
            if shown != last:
                last, since = shown, time.monotonic()
            if re.search(text, shown) and time.monotonic() - since > 2:
                return
            time.sleep(0.1)
        raise RuntimeError(f"the explorer never showed {text!r}")

    environment = ["env", "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR="]
    ask("new-session", "-d", "-x", "84", "-y", "19", shlex.join([*environment, str(fathom), "explore", directory]))
    try:
        wait_for("items, by disk usage")
        ask("send-keys", "j", "j", "Space", "j", "Space", "k")
        wait_for("(?s)[*].*[*]")
        return terminal(ask("capture-pane", "-e", "-N", "-p"), f"fathom explore {directory}")
    finally:
        ask("kill-server")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fathom", help="the program whose output is shown; without it, only the charts are made")
    parser.add_argument("--tree", default="/usr/share", metavar="DIR", help="the directory that is shown")
    parser.add_argument("--out", default=TOP / "docs/pictures", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pictures = {"speed.svg": chart()}
    for comparison in reproduced.COMPARISONS:
        pictures[comparison.name] = reproduced.chart(comparison, svg, SANS)
    if options.fathom:
        pictures["explore.svg"] = explorer(options.fathom, options.tree)
        pictures["du-tree.svg"] = tree(options.fathom, options.tree)
    for name, picture in pictures.items():
        (options.out / name).write_text(picture, encoding="utf-8")
        print(options.out / name)


if __name__ == "__main__":
    sys.exit(main())
