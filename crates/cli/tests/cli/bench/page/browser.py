"""Opens every `*.html` of the directory argv[1] in headless Chromium, and prints what it finds as JSON: name -> observations.
Beside a page is its run as `*.json`. The pages that argv[2] names are looked at in light and dark mode, at the widths of a
desktop and of a phone; screenshots of them stay in the directory.
"""

import base64
import json
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from chromium import console, open_browser  # noqa: E402

WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")
ASSETS = pathlib.Path(__file__).resolve().parents[5] / "report/assets"

UNFOLD = "document.querySelectorAll('details').forEach(folded => { folded.open = true; });"
# Every number as [JSON pointer, exact text, shown text].
NUMBERS = "return [...document.querySelectorAll('[data-key]')].map(e => [e.dataset.key, e.dataset.value, e.textContent]);"
TEXTS = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
# Elements that no page of a run has, and places of drawings that are no length of 0 to 100 percent, or of pixels.
FOREIGN = "return [...document.querySelectorAll('img, iframe, object, embed, form, input, b, [onload], [onerror], [style]')].map(e => e.outerHTML)"
WILD = """
const wild = [];
for (const drawn of document.querySelectorAll('svg, line, rect, text'))
  for (const name of ['x', 'y', 'x1', 'x2', 'y1', 'y2', 'width', 'height']) {
    const value = drawn.getAttribute(name), number = Number(value?.replace(/%$|em$/, ''));
    if (value !== null && !(number >= 0 && number <= 100)) wild.push(value);
  }
return wild;
"""
# The number of drawings without a size, overlapping texts, and the horizontal overflow in pixels.
LAYOUT = """
const root = document.documentElement;
const drawings = [...document.querySelectorAll('svg')].filter(e => !e.parentElement.closest('svg'));
const visible = drawings.filter(e => e.checkVisibility());
const empty = visible.filter(e => { const b = e.getBoundingClientRect(); return b.width < 1 || b.height < 1; });
const overlaps = [];
for (const svg of visible) {
  const boxes = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    if (p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom) overlaps.push(a + ' | ' + b);
  }));
}
for (const line of document.querySelectorAll('.line')) {
  const boxes = [...line.children].map(e => [e.className, e.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    if (p.left + 1 < q.right && q.left + 1 < p.right && p.top + 1 < q.bottom && q.top + 1 < p.bottom)
      overlaps.push(line.textContent + ': ' + a + ' | ' + b);
  }));
}
return {drawings: visible.length, empty: empty.length, overlaps, height: root.scrollHeight};
"""
SIDEWAYS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
# The lowest contrast of a text with its background (WCAG 2.2, 1.4.3), and that text.
CONTRAST = """
const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const luminance = c => c.slice(0, 3).map(linear).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const rgba = text => text.match(/[\\d.]+/g).map(Number);
function ground(e) {
  for (; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
}
let least = [22, ''];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
  if (!text || !e.checkVisibility() || e.closest('script, title')) continue;
  const style = getComputedStyle(e);
  const [a, b] = [luminance(rgba(e.closest('svg') ? style.fill : style.color)), luminance(ground(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < least[0]) least = [ratio, text];
}
return least;
"""
# The number of marks, and of pairs of marks whose order differs from that of their numbers.
MARKS = """
const places = [...document.querySelectorAll('figure')].filter(f => f.querySelector('.mark.best, .mark.other')).map(figure =>
  [...figure.querySelectorAll('.line')].flatMap(line => {
    const mark = line.querySelector('.track .mark.best, .track .mark.other');
    const number = line.querySelector('[data-key$="ratio/median"]');
    if (!mark || !number) return [];
    const box = mark.getBoundingClientRect();
    return [[Number(number.dataset.value), box.left + box.width / 2]];
  }).sort((a, b) => a[0] - b[0]));
let marks = 0, disorder = 0;
for (const figure of places) figure.forEach((mark, i) => { marks++; if (i && mark[1] < figure[i - 1][1]) disorder++; });
return [marks, disorder];
"""
# The class of the mark beside each name of a series.
COLOURS = "return [...document.querySelectorAll('.keys .key')].map(e => [e.textContent, e.querySelector('path')?.getAttribute('class')])"
# What the functions for axes and numbers return, each beside its name.
FUNCTIONS = """
const ticks = axis => axis.ticks.map(([, tick]) => Number(tick.toPrecision(12)));
return {
  isLog: [axisOver([1, 4]).isLog, axisOver([0.1, 10, NaN, 0, -1, Infinity]).isLog],
  places: [0.1, 1, 10, NaN].map(value => axisOver([0.1, 10]).place(value)).map(place => place && Math.round(place)),
  nothing: [axisOver([NaN, 0]), logAxisOver([])],
  ticks: [[0.7, 1.3], [1], [0.5, 40], [2.1, 9], [0.01, 1e4]].map(values => ticks(axisOver(values))).concat([ticks(logAxisOver([1.47, 1.99]))]),
  significant: [0, 1, 1.2345, 9.999, 12.34, 123.4, 999.9, 123456, 0.001234, -0.5, 1e-9, 1e300].map(value => significant(value)),
  units: [SECONDS(0.0009999), MICROS(2.5), BYTES_PER_S(1.3e9), BYTES_PER_S(0), SECONDS(1e-12), SHARE(0.125)],
  labels: [...[0.8, 10, 100, 1000].map(value => axisLabel(PLAIN, value)), axisLabel(SECONDS, 0.01)],
};
"""


def leaves(value, pointer=""):
    """Returns the text of every number in a parsed JSON value, by JSON pointer."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {at: text for key, item in items for at, text in leaves(item, f"{pointer}/{key}").items()}
    return {pointer: value.text} if isinstance(value, Number) else {}


class Number:
    """A JSON number that keeps its text."""

    def __init__(self, text):
        self.text = text


def shown_value(pointer, text):
    """Converts a shown number, with its prefix and unit, to the unit of the JSON."""
    prefixes = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
    digits, _, unit = text.partition("\u00a0")
    if unit == "%":
        return float(digits) / 100
    base = next((base for base in ("B/s", "/s", "s") if unit.endswith(base)), "")
    factor = prefixes[unit.removesuffix(base)]
    return float(digits) * factor * (1e6 if pointer.endswith("_us") else 1)


def is_same(exact, wanted):
    """Compares all digits of whole numbers, and the values of others: a script writes those as it likes."""
    return exact == wanted or ("." in wanted or "e" in wanted) and float(exact) == float(wanted)


def compare_numbers(found, wanted):
    """Returns the numbers that are wrong on the page or missing from it."""
    problems = []
    for pointer, exact, text in found:
        if pointer not in wanted or not is_same(exact, wanted[pointer]):
            problems.append(f"{pointer}: {exact} for {wanted.get(pointer)}")
        value = float(exact)
        if abs(shown_value(pointer, text) - value) > abs(value) * 0.005:
            problems.append(f"{pointer}: {text} for {exact}")
    # A number of repetitions that differs by cell, and the throughput of work without bytes, are none.
    none = {pointer for pointer, text in wanted.items() if pointer.endswith(("/blocks", "/bytes_per_s")) and float(text) == 0}
    drawn = {pointer for pointer in wanted if "/histogram/" in pointer}
    missing = wanted.keys() - none - drawn - {pointer for pointer, _, _ in found}
    return problems + [f"{pointer}: not on the page" for pointer in sorted(missing)]


def requests(browser, page):
    """Returns the URLs requested by the page, except its own. Requests of the initial tab are ignored."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [message for message in messages if message["method"] == "Network.requestWillBeSent"]
    sent = [message["params"] for message in sent if message["params"]["documentURL"] == page.as_uri()]
    addresses = {request["request"]["url"] for request in sent}
    assert page.as_uri() in addresses
    return sorted(address for address in addresses - {page.as_uri()} if not address.startswith("data:"))


def screenshot(browser, path, width, height):
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(picture["data"]))


def look(browser, page, scheme, width):
    """Returns the findings on the page in one colour scheme and width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(page.as_uri())
    layout = browser.execute_script(LAYOUT)
    contrast, text = browser.execute_script(CONTRAST)
    marks, disorder = browser.execute_script(MARKS)
    screenshot(browser, page.with_name(f"{page.stem}-{scheme}-{width}.png"), width, layout.pop("height"))
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    browser.execute_script(UNFOLD)
    return {"scheme": scheme, "width": width, "contrast": contrast, "faintest": text, "marks": marks, "disorder": disorder,
            "ground": ground, "sideways": browser.execute_script(SIDEWAYS)} | layout


def observations(browser, page, is_viewed):
    views = [look(browser, page, scheme, width) for scheme in SCHEMES for width in WIDTHS] if is_viewed else []
    browser.get(page.as_uri())
    browser.execute_script(UNFOLD)
    # The tables are made by an event that follows.
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 0))")
    text = page.with_suffix(".json").read_text()
    wanted = json.loads(text, parse_float=Number, parse_int=Number)
    found = browser.execute_script(NUMBERS)
    embedded = browser.execute_script("return document.getElementById('run').textContent")
    texts = {kind: browser.execute_script(TEXTS, kind) for kind in ("h1", "h2", "h3", "summary", ".verdict", ".verdicts li", "code", "td", "head title")}
    return {
        "views": views,
        "wrong": compare_numbers(found, leaves(wanted)),
        "embedded": json.loads(embedded) == json.loads(text),
        "console": console(browser),
        "requests": requests(browser, page),
        "scripts": len(browser.execute_script(TEXTS, "script")),
        "foreign": browser.execute_script(FOREIGN),
        "wild": browser.execute_script(WILD),
        "colours": browser.execute_script(COLOURS),
        "bars": browser.execute_script("return [...document.querySelectorAll('rect.count')].map(e => [e.getAttribute('height'), e.textContent])"),
        "crosses": browser.execute_script("return [...document.querySelectorAll('.track .mark.discarded title')].map(e => e.textContent)"),
        "texts": texts,
    }


def main(directory, viewed):
    names = [name for name in viewed.split(",") if name]
    directory = directory.resolve()
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile, profile)
        try:
            report = {page.stem: observations(browser, page, page.stem in names) for page in sorted(directory.glob("*.html"))}
            browser.get("about:blank")
            sources = [(ASSETS / path).read_text() for path in ("elements.js", "run/numbers.js", "run/axis.js")]
            report["functions"] = browser.execute_script("".join(sources) + FUNCTIONS)
        finally:
            browser.quit()
    json.dump(report, sys.stdout)


main(pathlib.Path(sys.argv[1]), sys.argv[2])
