"""The list of pages that axe-core looks at has no gap."""

from __future__ import annotations

import re
from collections import defaultdict
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve

from tests.attacks.access.test_routes import table
from tests.pages.accessibility.pages import NOT_PAGES, PAGES

DRAFT = "0" * 8 + "-0000-4000-8000-" + "0" * 12
SAMPLES = {"int": "1", "uuid": DRAFT}


def name_of(path: str) -> str:
    """Returns the name of the route that serves the path, "" if none does."""
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""


def test_every_route_of_pages_is_among_them() -> None:
    routes = [row.removeprefix("django ") for row, methods in table().items() if "GET " in methods]
    paths = [
        re.sub(r"<(\w+):\w+>", lambda match: SAMPLES.get(match[1], "x"), route)
        for route in routes
        if route.startswith("/") and not route.startswith("/api/v1/")
    ]
    addresses = [address.format_map(defaultdict(lambda: "1", draft=DRAFT)) for address in PAGES]
    shown = {name_of(urlsplit(address).path) for address in (*addresses, "/sign-in/")}
    missing = {name_of(path) for path in paths} - shown - NOT_PAGES
    assert not missing, "add each to PAGES or NOT_PAGES in tests/pages/accessibility/pages.py"
