"""HTML for comparison: where a template breaks its lines says nothing about the page."""

from __future__ import annotations

import re


def one_line(html: str) -> str:
    """`html` with one space for each run of white space, and none between two tags."""
    return re.sub(r"> <", "><", re.sub(r"\s+", " ", html))
