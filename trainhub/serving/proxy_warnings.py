"""What operators are told of a proxy that removes headers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainhub.serving.proxy_faults import FORWARDED_FOR, FORWARDED_PROTO, LOSSES, UPGRADE
from workspaces.hub_metrics.processes import measured_processes

_REMEDIES = {
    FORWARDED_FOR: "For nginx: proxy_set_header X-Forwarded-For $remote_addr; for Caddy: header_up "
    "X-Forwarded-For {remote_host}",
    FORWARDED_PROTO: "For nginx: proxy_set_header X-Forwarded-Proto $scheme; Caddy sets it by itself",
    UPGRADE: "For nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header "
    "Connection $connection_upgrade; Caddy does it by itself",
}


@dataclass(frozen=True)
class ProxyWarning:
    """`count`: requests of the last minutes that lacked the header. `text` and `remedy`: sentences."""

    header: str
    count: int
    text: str
    remedy: str


def proxy_warnings(now: datetime) -> list[ProxyWarning]:
    """Returns what the web servers have noticed within the last minutes."""
    counts: dict[str, int] = {}
    for process in measured_processes(now):
        metric = process.recent.get("trainhub_proxy_faults")
        if metric is None or process.is_silent:
            continue
        for (header,), series in metric.series.items():
            counts[header] = counts.get(header, 0) + int(series.value)
    return [_warning(header, counts[header]) for header in LOSSES if counts.get(header)]


def _warning(header: str, count: int) -> ProxyWarning:
    return ProxyWarning(
        header,
        count,
        f"{count} requests of the last minutes came through the proxy without the header {header}: "
        f"{LOSSES[header]}.",
        f"Let the proxy pass it on or set it (docs/network.md). {_REMEDIES[header]}.",
    )
