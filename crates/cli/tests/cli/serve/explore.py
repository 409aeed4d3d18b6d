"""Opens the page of `fathom serve --explore` in headless Chromium: argv[1] is its address. The directory argv[2] is for the browser.
Writes the observations as JSON.
"""

import json
import pathlib
import sys
import tempfile

from selenium.webdriver.common.by import By

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from chromium import console, open_browser, wait  # noqa: E402

WATCH = """window.violations = [];
// Twice, the server has too much to do: in all, and for this client.
window.refused = 0;
const fetched = window.fetch;
window.fetch = (...address) => {
  if (window.refused === 2) return fetched(...address);
  window.refused += 1;
  return Promise.resolve(new Response("", {status: [503, 429][window.refused - 1], headers: {"retry-after": "0"}}));
};
document.addEventListener('securitypolicyviolation', event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI));"""
ROWS = "#panel tbody tr"


def names(browser):
    return browser.execute_script("return [...document.querySelectorAll('#panel tbody th button')].map(name => name.textContent)")


def opened(browser, name):
    """Opens the directory `name` of the table, and waits until nothing is being fetched."""
    before = browser.execute_script("return location.hash")
    browser.execute_script("[...document.querySelectorAll('#panel tbody th button')].find(name => name.textContent === arguments[0]).click()", name)
    wait(browser, lambda: browser.execute_script("return location.hash") != before)
    wait(browser, lambda: browser.execute_script("return document.getElementById('loading').hidden"))


def rest(browser):
    """Returns the number of entries that have no row of their own."""
    last = [name for name in names(browser) if name.endswith(" more")]
    return int("".join(filter(str.isdigit, last[0]))) if last else 0


def shown(browser):
    """Returns the number of rows of the table, with those that are not made yet."""
    more = browser.execute_script("return document.querySelector('#panel button.more')?.textContent ?? ''")
    return len(names(browser)) + int("".join(filter(str.isdigit, more)) or 0) - (1 if rest(browser) else 0)


def main(url, scratch):
    with tempfile.TemporaryDirectory(dir=scratch) as profile:
        browser = open_browser(profile, scratch)
        try:
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            browser.get(url + "/")
            wait(browser, lambda: names(browser))
            wait(browser, lambda: browser.execute_script("return document.getElementById('loading').hidden"))
            report = {"before": json.loads(browser.execute_script("return document.getElementById('data').textContent"))["nodes"]["name"].__len__()}
            opened(browser, "large")
            report["after"] = shown(browser)
            while report["after"] < 20_500:
                # The row of the rest is the last one, so it is made when it is asked for.
                browser.execute_script("document.querySelector('#panel button.more')?.click()")
                last = browser.execute_script("return [...document.querySelectorAll('#panel tbody th button')].findLast(name => name.textContent.endsWith(' more'))")
                if last is None:
                    continue
                before = shown(browser)
                # Twice, for there is one fetch at a time.
                browser.execute_script("arguments[0].click(); arguments[0].click()", last)
                wait(browser, lambda: shown(browser) > before)
                report["after"] = shown(browser)
            report["all"] = shown(browser)
            browser.find_elements(By.CSS_SELECTOR, "#crumbs button")[0].click()
            for name in ("small", "<img src=x onerror=alert(1)>"):
                wait(browser, lambda: name in names(browser))
                opened(browser, name)
            wait(browser, lambda: "deep <b>" in names(browser))
            report["path"] = [crumb.get_attribute("textContent") for crumb in browser.find_elements(By.CSS_SELECTOR, "#crumbs button")]
            report["deep"] = names(browser)
            report["refused"] = browser.execute_script("return window.refused")
            report["violations"], report["console"] = browser.execute_script("return window.violations"), console(browser)
        finally:
            browser.quit()
    json.dump(report, sys.stdout)


main(sys.argv[1], pathlib.Path(sys.argv[2]))
