"""The six main pages, in both themes, on a wide and on a narrow screen."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from bench.pictures.visit import NARROW, WIDE, Visit

# Few colours are enough for pages, and make files of a fifth of the size.
COLOURS = 192
UNHEALTHY_NODE = "sim-h100-4"
EXAMPLE = "digits-ddp"


def take_stills(visitor: Visit, folder: Path) -> None:
    draft = _draft(visitor)
    addresses = {
        "dashboard": "/",
        "review": f"/runs/new/{draft}/review/",
        "run": visitor.failed,
        "runs": "/runs/",
        "compare": visitor.compare,
        "node": f"/nodes/{UNHEALTHY_NODE}/",
    }
    for is_dark in (False, True):
        for size, width in ((WIDE, "wide"), (NARROW, "narrow")):
            page = visitor.page(size, is_dark=is_dark)
            for name, address in addresses.items():
                visitor.open(page, address)
                theme = "dark" if is_dark else "light"
                save(page, folder / f"{name}-{theme}-{width}.png")
            page.context.close()


def save(page: Page, path: Path) -> None:
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def _draft(visitor: Visit) -> str:
    """Returns the number of a new draft of the example, as a click on its card makes it."""
    page = visitor.page()
    visitor.open(page, "/runs/new/")
    page.click(f"form[action*='{EXAMPLE}'] button")
    page.wait_for_url("**/review/")
    draft = page.url.rstrip("/").split("/")[-2]
    page.context.close()
    return draft
