"""Opens pages of `fathom report` in headless Chromium: argv[1] is the page of a tree with hostile names, argv[2] that of the
same tree later, argv[3] that of a tree that has grown, argv[4] that of an import without disk usage. The directory argv[5] is for
the browser. Writes the observations as JSON.
"""

import json
import pathlib
import sys
import tempfile

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from chromium import console, dialogs, open_browser, wait  # noqa: E402

WATCH = """window.violations = []; window.ran = [];
document.addEventListener('securitypolicyviolation', event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI));
window.alert = text => window.ran.push(text);"""
ROWS = """return [...document.querySelectorAll('#panel tbody tr')].map(row => [row.querySelector('th button').textContent,
    ...[...row.querySelectorAll('td[data-value]')].map(cell => Number(cell.dataset.value))])"""
CARD = """return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map(row => [row.querySelector('th').textContent,
    ...[...row.querySelectorAll('td[data-value]')].map(cell => Number(cell.dataset.value))])"""
ELEMENTS = """return ['script', 'img', 'svg', 'iframe', 'a:not(.skip)', '[onerror]', '[onload]', '[style*=url]']
    .map(kind => document.querySelectorAll(kind).length)"""
# The size of the map and its most frequent colours, from a copy: the browser warns of several readings of one canvas.
PIXELS = """const canvas = document.getElementById('base').cloneNode();
canvas.getContext('2d').drawImage(document.getElementById('base'), 0, 0);
const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
const colours = new Map();
for (let at = 0; at < data.length; at += 4) {
    const colour = data[at] << 16 | data[at + 1] << 8 | data[at + 2];
    colours.set(colour, (colours.get(colour) ?? 0) + 1);
}
return {width: canvas.width, height: canvas.height, colours: [...colours].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([colour]) => colour)}"""


def open_page(browser, page, mark=""):
    browser.get(pathlib.Path(page).resolve().as_uri() + mark)
    wait(browser, lambda: browser.execute_script("return document.querySelectorAll('#panel tbody tr').length"))


def text(browser, name):
    return browser.find_element(By.ID, name).get_attribute("textContent")


def crumbs(browser):
    return [crumb.get_attribute("textContent") for crumb in browser.find_elements(By.CSS_SELECTOR, "#crumbs button")]


def point(browser, x, y):
    """Moves the pointer to a place of the map, given in parts of its size."""
    over = browser.find_element(By.ID, "over")
    size = over.size
    ActionChains(browser).move_to_element_with_offset(over, int((x - 0.5) * size["width"]), int((y - 0.5) * size["height"])).perform()
    return text(browser, "status-path")


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def media(browser, **features):
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})


def look(browser):
    """What the page of hostile names shows, and what a pointer does there."""
    found = {"title": browser.title, "heading": text(browser, "title"), "rows": browser.execute_script(ROWS)}
    found["hover"] = point(browser, 0.1, 0.3)
    found["tip"] = browser.execute_script("const tip = document.getElementById('tip'); return tip.hidden ? null : tip.textContent")
    ActionChains(browser).click().perform()
    found["clicked"] = crumbs(browser)
    found["inside"] = browser.execute_script(ROWS)
    browser.back()
    wait(browser, lambda: len(crumbs(browser)) == 1)
    return found


def visit(browser):
    """Opens every directory by its row of the table. Returns the rows of each."""
    found = {}
    for place in range(len(browser.execute_script(ROWS))):
        browser.find_elements(By.CSS_SELECTOR, "#panel tbody th button")[place].click()
        if len(crumbs(browser)) > 1:
            found[crumbs(browser)[-1]] = browser.execute_script(ROWS)
            browser.find_elements(By.CSS_SELECTOR, "#crumbs button")[0].click()
    return found


def links(browser, page, other):
    """Follows the addresses of all directories of `page` in the page `other`, of a later inventory. Returns the directory of each,
    what is shown, and what is shown for a directory that is gone."""
    open_page(browser, page)
    found = []
    for place in range(len(browser.execute_script(ROWS))):
        browser.find_elements(By.CSS_SELECTOR, "#panel tbody th button")[place].click()
        name, mark = crumbs(browser)[-1], browser.execute_script("return location.hash")
        if len(crumbs(browser)) > 1:
            found.append([name, mark])
            browser.find_elements(By.CSS_SELECTOR, "#crumbs button")[0].click()
    for link in found:
        browser.get("about:blank")
        open_page(browser, other, link[1])
        link.append(crumbs(browser))
    browser.get("about:blank")
    open_page(browser, other, "#dir=s/gone/x")
    return {"found": found, "gone": [crumbs(browser), text(browser, "nearest")]}


def keyboard(browser):
    """Goes through the map with keys alone, from the field before it on."""
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "title")).perform()
    browser.find_element(By.ID, "area").send_keys(Keys.TAB)
    found = {"focus": browser.execute_script("return document.activeElement.id"), "first": text(browser, "status-path"), "places": []}
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_UP):
        press(browser, key)
        found["places"].append(text(browser, "status-path"))
    found["told"] = text(browser, "live")
    press(browser, "c")
    found["copied"] = wait(browser, lambda: text(browser, "status-facts") if "opied" in text(browser, "status-facts") else None)
    press(browser, Keys.ENTER)
    found["entered"], found["live"] = crumbs(browser), text(browser, "live")
    press(browser, Keys.ESCAPE)
    found["left"] = crumbs(browser)
    press(browser, Keys.ENTER)
    press(browser, Keys.BACKSPACE)
    found["again"] = crumbs(browser)
    return found


def legend_buttons(browser):
    return browser.find_elements(By.CSS_SELECTOR, "#legend button")


def tools(browser):
    """Looks for a name, sorts, copies a table, and hides colours."""
    found = {}
    browser.find_element(By.ID, "find").send_keys("PHOTO")
    found["found"], found["caption"] = browser.execute_script(ROWS), browser.find_element(By.CSS_SELECTOR, "#panel caption").text
    browser.find_elements(By.CSS_SELECTOR, "#panel tbody th button")[0].click()
    found["place"] = crumbs(browser)
    found["left"] = browser.find_element(By.ID, "find").get_attribute("value")
    found["inside"] = browser.execute_script(ROWS)
    sorts = []
    for column in (0, 0, 2, 2):
        browser.find_elements(By.CSS_SELECTOR, "#panel thead button")[column].click()
        heads = browser.find_elements(By.CSS_SELECTOR, "#panel thead th")
        sorts.append([[head.get_attribute("aria-sort") for head in heads], [row[0] for row in browser.execute_script(ROWS)]])
    found["sorts"] = sorts
    browser.find_elements(By.CSS_SELECTOR, "#crumbs button")[0].click()
    browser.execute_script("""window.copied = [];
        Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied.push(text); }}, configurable: true})""")
    for card in ("by-ext", "top-files"):
        browser.find_element(By.CSS_SELECTOR, f"#{card} .csv").click()
    found["csv"] = wait(browser, lambda: browser.execute_script("return window.copied.length === 2 ? window.copied : null"))
    found["told"] = text(browser, "live")
    found["all"] = browser.execute_script(PIXELS)["colours"]
    legend_buttons(browser)[0].click()
    found["pressed"] = [button.get_attribute("aria-pressed") for button in legend_buttons(browser)]
    found["only"] = browser.execute_script(PIXELS)["colours"]
    legend_buttons(browser)[0].click()
    found["again"] = browser.execute_script(PIXELS)["colours"]
    Select(browser.find_element(By.ID, "colour")).select_by_value("ext")
    found["ext"] = [button.text for button in legend_buttons(browser)]
    Select(browser.find_element(By.ID, "colour")).select_by_value("kind")
    return found


def printed(browser, page):
    """The colours of the map in the dark scheme, on paper, and after that."""
    media(browser, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    open_page(browser, page)
    found = {"screen": browser.execute_script(PIXELS)["colours"]}
    for event in ("beforeprint", "afterprint"):
        browser.execute_script("dispatchEvent(new Event(arguments[0]))", event)
        found[event] = browser.execute_script(PIXELS)["colours"]
    media(browser)
    return found


def schemes(browser, page):
    """The colours of the map in both schemes, at twice the pixels, and the width of a telephone."""
    found = {}
    for scheme in ("light", "dark"):
        media(browser, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        open_page(browser, page)
        found[scheme] = browser.execute_script(PIXELS)
    size = {"width": 375, "height": 812, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    open_page(browser, page)
    found["phone"] = browser.execute_script(PIXELS)
    found["width"] = browser.execute_script("return Math.max(document.documentElement.scrollWidth, innerWidth)")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    media(browser)
    return found


def requests(browser):
    """Returns the addresses of the requests that were made, without those of pages, of icons in them, and of the browser's own."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if not url.startswith(("file:", "data:", "chrome:"))]


def main(hostile, later, grown, apparent, scratch):
    with tempfile.TemporaryDirectory(dir=scratch) as profile:
        browser = open_browser(profile, scratch)
        try:
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
            # The whole map and its table fit, so nothing is scrolled below a resting pointer.
            size = {"width": 1400, "height": 1800, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            open_page(browser, hostile)
            report = {"look": look(browser), "visit": visit(browser), "keyboard": keyboard(browser)}
            report["links"] = links(browser, hostile, later)
            open_page(browser, hostile)
            report["elements"] = browser.execute_script(ELEMENTS)
            report["cards"] = {name: browser.execute_script(CARD, name) for name in ("top-dirs", "top-files", "by-ext", "by-size")}
            report["ran"] = browser.execute_script("return window.ran") + [""] * dialogs(browser)
            report["violations"] = browser.execute_script("return window.violations")
            report["schemes"], report["printed"] = schemes(browser, hostile), printed(browser, hostile)
            open_page(browser, hostile)
            report["tools"] = tools(browser)
            open_page(browser, apparent)
            report["apparent"] = [text(browser, "facts"), browser.execute_script("return document.getElementById('area').value"),
                browser.execute_script(ROWS), text(browser, "status-facts"), browser.execute_script(PIXELS)["colours"]]
            open_page(browser, grown)
            report["growth"], report["old"] = [browser.execute_script(CARD, name) for name in ("growth", "old-files")]
            report["colours"] = [option.get_attribute("value") for option in browser.find_elements(By.CSS_SELECTOR, "#colour option")]
            report["legend"] = text(browser, "legend")
            Select(browser.find_element(By.ID, "colour")).select_by_value("ignored")
            report["ignored"], report["ignored_pixels"] = text(browser, "legend"), browser.execute_script(PIXELS)
            browser.find_elements(By.CSS_SELECTOR, "#growth tbody button")[1].click()
            report["grown"] = crumbs(browser)
            report["violations"] += browser.execute_script("return window.violations")
            report["requests"], report["console"] = requests(browser), console(browser)
            # The check itself must notice what the policy refuses.
            browser.execute_script("const made = document.createElement('img'); made.src = 'http://localhost:9/x'; document.body.append(made)")
            report["noticed"] = wait(browser, lambda: browser.execute_script("return window.violations"))
        finally:
            browser.quit()
    json.dump(report, sys.stdout)


main(*sys.argv[1:5], pathlib.Path(sys.argv[5]))
