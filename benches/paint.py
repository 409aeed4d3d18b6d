#!/usr/bin/env python3
"""Measures how soon headless Chromium paints a page of `fathom report`, and writes a run directory.

Owns the measurement: the page of an inventory of the tree `five`, opened from the disk in a browser
that has opened it once before. Requires Selenium, chromium and chromedriver, and an otherwise idle
machine.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import corpora
from runner import build, machine, report, stats
from runner.main import log, run_directory

sys.path.append(str(build.REPOSITORY / "crates/cli/tests/cli/support"))

LIMIT_MS, PAGE_BYTES_MAX = 1000, 1_500_000
# Milliseconds from the start of the navigation (W3C Paint Timing, Navigation Timing).
TIMES = """const [paint] = performance.getEntriesByName('first-contentful-paint');
const [navigation] = performance.getEntriesByType('navigation');
return paint && navigation.loadEventEnd ? [paint.startTime, navigation.loadEventEnd] : null"""


def main():
    options = parse_arguments()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="fathom-bench-", dir=corpora.ROOT) as scratch:
        page = make_page(options.fathom, corpora.corpus("five"), Path(scratch))
        page_bytes = page.stat().st_size
        paints, loads = zip(*times(page, options.blocks, scratch), strict=True)
    text = table(page_bytes, {"first contentful paint": paints, "load event": loads}, rng)
    print(text)
    directory = options.out or run_directory("-paint")
    write(directory, text, paints, loads)
    log(f"wrote {os.path.relpath(directory)}")


def make_page(fathom, tree, scratch):
    inventory, page = scratch / "inventory", scratch / "page.html"
    subprocess.run([fathom, "scan", "-o", inventory, tree], check=True)
    subprocess.run([fathom, "report", "-o", page, inventory], check=True)
    return page


def times(page, blocks, scratch):
    """Yields the milliseconds to the first paint and to the load event of each time the page is opened."""
    from chromium import open_browser, wait

    browser = open_browser(Path(scratch, "profile"), Path(scratch, "downloads"))
    try:
        for block in range(-1, blocks):
            browser.get("about:blank")
            browser.get(page.as_uri())
            taken = wait(browser, lambda: browser.execute_script(TIMES))
            if block >= 0:
                yield taken
    finally:
        browser.quit()


def table(page_bytes, measured, rng):
    """Returns the results as Markdown."""
    rows = [["size of the page", f"{PAGE_BYTES_MAX:,} bytes", f"{page_bytes:,} bytes", outcome(page_bytes <= PAGE_BYTES_MAX)]]
    for name, taken in measured.items():
        middle, low, high = stats.interval(list(taken), rng)
        needed = f"{LIMIT_MS} ms" if "paint" in name else "-"
        met = outcome(middle <= LIMIT_MS) if "paint" in name else ""
        rows.append([name, needed, f"{middle:.0f} ms [{low:.0f}, {high:.0f}], slowest {max(taken):.0f} ms", met])
    return report.markdown(["what", "needed", "measured", "outcome"], rows, numbers=False)


def outcome(met):
    return "PASS" if met else "FAIL"


def write(directory, text, paints, loads):
    """Writes README.md and raw.csv."""
    directory.mkdir(parents=True)
    rows = "".join(f"{at},{paint:.1f},{load:.1f}\n" for at, (paint, load) in enumerate(zip(paints, loads, strict=True)))
    (directory / "raw.csv").write_text(f"block,paint_ms,load_ms\n{rows}")
    facts = corpora.facts_of("five")
    listed = {
        **machine.facts(corpora.ROOT),
        "chromium": build.first_line(["chromium", "--version"]),
        "tree `five`": f"{facts['entries']:,} entries; {facts['origin']}",
    }
    (directory / "README.md").write_text(
        "# The first paint of a page of fathom report\n\n    python3 benches/paint.py\n\n"
        + report.markdown(["what", "which"], [list(row) for row in listed.items()], numbers=False)
        + "\nThe page of an inventory of the tree is opened from the disk, in one headless browser that has opened it once before.\n"
        + f"Times are from the start of the navigation, medians of {len(paints)} with their 95 % bootstrap interval.\n\n{text}"
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10, help="how often the page is opened (default: 10)")
    parser.add_argument("--fathom", type=Path, default=build.REPOSITORY / "target/release/fathom")
    parser.add_argument("--seed", type=int, default=1, help="of the intervals (default: 1)")
    parser.add_argument("--out", type=Path, help="the run directory (default: benches/runs/DATE-KIND-paint)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
