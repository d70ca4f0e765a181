"""How pages and tables write amounts of usage: hours and energy."""

from __future__ import annotations


def hours(count: float) -> str:
    """Returns hours with about three significant digits: `0.042`, `1.25`, `37.5`, `1,204`."""
    if count == 0 or count >= 100:
        return f"{count:,.0f}"
    for lower_bound, digits in ((10, 1), (1, 2), (0.001, 3)):
        if count >= lower_bound:
            return f"{count:.{digits}f}"
    return "<0.001"


def energy(watt_hours: float) -> str:
    if watt_hours < 1000:
        return f"{hours(watt_hours)} Wh"
    return f"{hours(watt_hours / 1000)} kWh" if watt_hours < 1e6 else f"{hours(watt_hours / 1e6)} MWh"
