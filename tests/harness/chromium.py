"""The browser of the tests and the benchmarks: the system's headless Chromium, or Playwright's own."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright

# The first one has no windows, and takes half the CPU time of the others.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def launch(playwright: Playwright) -> Browser:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
