"""Loads pages of two servers in headless Chromium: argv[1] lists directories, argv[2] has a single-page application and a
recording. Downloads go to the directory argv[3]. Writes the observations as JSON.
"""

import json
import pathlib
import sys
import tempfile
import time

from selenium.webdriver.common.by import By

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from chromium import console, dialogs, open_browser, wait  # noqa: E402

NAMES = "return [...document.querySelectorAll('tbody a')].map(a => a.textContent).filter(name => name !== '../')"
ROWS = "return [...document.querySelectorAll('tbody tr')].filter(row => row.getBoundingClientRect().bottom <= innerHeight).length"
ELEMENTS = "return document.querySelectorAll('script, img, svg, [onload], [onerror], [onmouseover]').length"
PROTOCOLS = "return [...new Set([...document.querySelectorAll('a')].map(a => a.protocol))]"


def click(browser, text):
    browser.find_element(By.PARTIAL_LINK_TEXT, text).click()


def sort(browser, url):
    """Clicks each column's header until it is marked as sorted. Returns the names in each order."""
    shown = {}
    browser.get(f"{url}/sorted/")
    for head in ("Name", "Size", "Modified"):
        before = browser.current_url
        click(browser, head)
        wait(browser, lambda: browser.current_url != before)
        wait(browser, lambda: head in browser.find_element(By.CSS_SELECTOR, "th[aria-sort]").text)
        shown[head] = browser.execute_script(NAMES)
    return shown


def widths(browser, url):
    """Returns the width of the pages in pixels on the screen of a telephone."""
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    found = {}
    for path in ("/sorted/", "/hostile/"):
        browser.get(url + path)
        found[path] = browser.execute_script("return Math.max(document.documentElement.scrollWidth, innerWidth)")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return found


def laptop(browser, url):
    """Opens a directory in a browser window of 1366 by 657 pixels, as on a laptop of 1366 by 768. Returns the visible rows, and
    the names that a filter leaves."""
    size = {"width": 1366, "height": 657, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(f"{url}/many/")
    rows = browser.execute_script(ROWS)
    before = browser.current_url
    field = browser.find_element(By.NAME, "filter")
    field.send_keys("E-1\n")
    wait(browser, lambda: browser.current_url != before)
    filtered = browser.execute_script(NAMES)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return {"rows": rows, "filtered": filtered, "readme": browser.execute_script("return !!document.querySelector('pre')")}


def hostile(browser, url, downloads):
    browser.get(f"{url}/hostile/")
    report = {
        "names": browser.execute_script(NAMES),
        "elements": browser.execute_script(ELEMENTS),
        "protocols": browser.execute_script(PROTOCOLS),
        "dialogs": dialogs(browser),
    }
    # The media type of this file is unknown, so the browser downloads it.
    click(browser, "javascript:alert(1)")
    wait(browser, lambda: any(file.read_bytes() == b"harmless" for file in downloads.iterdir() if file.is_file()))
    report["dialogs"] += dialogs(browser)
    return report


def download(browser, url, downloads):
    browser.get(f"{url}/sorted/")
    click(browser, "b.bin")
    target = downloads / "b.bin"
    wait(browser, lambda: target.exists() and target.stat().st_size == 300_000)


def route(browser, url):
    browser.get(f"{url}/some/place/7")
    shown = wait(browser, lambda: browser.find_element(By.ID, "shown").text)
    complaints = console(browser)
    missing = browser.execute_script("return fetch('/missing.js').then(response => response.status)")
    return shown, complaints, missing


def seek(browser, url):
    """Seeks to 500 seconds from the beginning. Returns the position and the ranges requested."""
    browser.get_log("performance")
    browser.get(f"{url}/player.html")
    video = "document.querySelector('video')"
    wait(browser, lambda: browser.execute_script(f"return {video}.readyState >= 1"))
    browser.execute_script(f"{video}.currentTime = 500")
    wait(browser, lambda: browser.execute_script(f"return !{video}.seeking && {video}.readyState >= 2"))
    report = browser.execute_script(f"return {{time: {video}.currentTime, duration: {video}.duration}}")
    # The browser aborts the remaining requests when it leaves the page, so that their responses are logged.
    browser.get("about:blank")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    responses = [message["params"]["response"] for message in messages if message["method"] == "Network.responseReceived"]
    fields = [{name.lower(): value for name, value in response["headers"].items()} for response in responses]
    report["ranges"] = [field["content-range"] for field in fields if "content-range" in field]
    time.sleep(0.5)
    return report


def main(listed, routed, downloads):
    with tempfile.TemporaryDirectory(dir=downloads) as profile:
        browser = open_browser(profile, downloads)
        try:
            report = {"sorted": sort(browser, listed), "widths": widths(browser, listed), "hostile": hostile(browser, listed, downloads)}
            report["laptop"] = laptop(browser, listed)
            download(browser, listed, downloads)
            report["listing_console"] = console(browser)
            report["routed"], report["routed_console"], report["missing"] = route(browser, routed)
            report["seek"] = seek(browser, routed)
        finally:
            browser.quit()
    json.dump(report, sys.stdout)


main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
