"""Which compression a client accepts."""

from __future__ import annotations


def accepted_encoding(header: str) -> str:
    """Returns the encoding to use for a value of Accept-Encoding: "br", "gzip", or "" for none."""
    offered = {}
    for item in header.lower().split(","):
        name, _, weight = item.partition(";")
        offered[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((name for name in ("br", "gzip") if offered.get(name)), "")
