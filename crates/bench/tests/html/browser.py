"""Checks the page argv[1] in headless Chromium, in light and dark mode, at desktop and phone width.

Prints a report as JSON: differences between the numbers on the page and in the JSON file argv[2],
and the faults that the browser finds. Screenshots are written to the directory argv[3].
"""

import base64
import json
import pathlib
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars""".split()
WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")

# Returns every number as [JSON pointer, exact text, shown text].
NUMBERS = """
return [...document.querySelectorAll('[data-key]')].map(e => [
  e.closest('[data-at]').dataset.at + '/' + e.dataset.key, e.dataset.value, e.textContent]);
"""
# Returns the number of drawings without a size, overlapping texts, and the horizontal overflow in pixels.
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
const height = root.scrollHeight;
const folded = document.querySelectorAll('details');
folded.forEach(e => { e.open = true; });
const sideways = root.scrollWidth - root.clientWidth;
folded.forEach(e => { e.open = false; });
return {drawings: visible.length, empty: empty.length, overlaps, sideways, height};
"""
# Returns the lowest contrast of a text with its background (WCAG 2.2, 1.4.3), and that text.
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
# Returns the number of marks, and of pairs of marks whose order differs from that of their numbers.
MARKS = """
const places = [...document.querySelectorAll('figure')].filter(f => f.querySelector('.mark.best, .mark.other')).map(figure =>
  [...figure.querySelectorAll('.line')].flatMap(line => {
    const mark = line.querySelector('.track .mark.best, .track .mark.other');
    const number = line.querySelector('[data-key="ratio/median"]');
    if (!mark || !number) return [];
    const box = mark.getBoundingClientRect();
    return [[Number(number.dataset.value), box.left + box.width / 2]];
  }).sort((a, b) => a[0] - b[0]));
let marks = 0, disorder = 0;
for (const figure of places) figure.forEach((mark, i) => { marks++; if (i && mark[1] < figure[i - 1][1]) disorder++; });
return [marks, disorder];
"""


def open_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


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


def compare_numbers(found, wanted):
    """Returns the numbers that are wrong on the page or missing from it."""
    problems = []
    for pointer, exact, text in found:
        if wanted.get(pointer) != exact:
            problems.append(f"{pointer}: {exact} for {wanted.get(pointer)}")
        value = float(exact)
        if abs(shown_value(pointer, text) - value) > abs(value) * 0.005:
            problems.append(f"{pointer}: {text} for {exact}")
    # A number of repetitions that differs by cell, and the throughput of work without bytes, are none.
    none = {pointer for pointer, text in wanted.items() if pointer.endswith(("/blocks", "/bytes_per_s")) and float(text) == 0}
    missing = wanted.keys() - none - {pointer for pointer, _, _ in found}
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


def look(browser, page, scheme, width, directory):
    """Returns the findings on the page in one colour scheme and width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(page.as_uri())
    layout = browser.execute_script(LAYOUT)
    contrast, text = browser.execute_script(CONTRAST)
    marks, disorder = browser.execute_script(MARKS)
    screenshot(browser, directory / f"{scheme}-{width}.png", width, layout.pop("height"))
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return {"scheme": scheme, "width": width, "contrast": contrast, "faintest": text, "marks": marks,
            "disorder": disorder, "ground": ground} | layout


def main(page, data, directory):
    wanted = json.loads(data.read_text(), parse_float=Number, parse_int=Number)
    with tempfile.TemporaryDirectory(dir=directory) as profile:
        browser = open_browser(profile)
        try:
            views = [look(browser, page, scheme, width, directory) for scheme in SCHEMES for width in WIDTHS]
            found = browser.execute_script(NUMBERS)
            embedded = browser.execute_script("return document.getElementById('run').textContent")
            report = {
                "views": views,
                "numbers": len(found),
                "wrong": compare_numbers(found, leaves(wanted)),
                "embedded": json.loads(embedded) == json.loads(data.read_text()),
                "console": [entry["message"] for entry in browser.get_log("browser")],
                "requests": requests(browser, page),
                "scripts": browser.execute_script("return document.querySelectorAll('script').length"),
            }
        finally:
            browser.quit()
    json.dump(report, sys.stdout)


main(*map(pathlib.Path, sys.argv[1:]))
