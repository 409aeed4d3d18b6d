"""Headless Chromium for the tests that look at pages, driven by Selenium."""

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars""".split()
PATIENCE_S = 60


def open_browser(profile, downloads):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    behavior = {"behavior": "allow", "downloadPath": str(downloads)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    return browser


def wait(browser, look):
    return WebDriverWait(browser, PATIENCE_S, poll_frequency=0.05).until(lambda _: look())


def console(browser):
    """Returns the new messages of the browser's console, except for the missing icon, which browsers request."""
    messages = [entry["message"] for entry in browser.get_log("browser")]
    return [message for message in messages if "/favicon.ico" not in message]


def dialogs(browser):
    try:
        browser.switch_to.alert.dismiss()
        return 1
    except NoAlertPresentException:
        return 0
