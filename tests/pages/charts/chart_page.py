"""A page with charts and a small hub behind it: numbers that a test decides, history by HTTP and samples by a
socket."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from clusters.charts import chart_config
from clusters.models import Gpu
from tests.hub import eventually
from tests.pages.serving import served
from trainhub.static_files import HubStatic

GIB = 2**30
Curve = Callable[[str, int, float], float | None]


def usual(metric: str, index: int, at: float) -> float | None:
    """A plausible fleet: GPU 3 is idle, the last one fell silent in the middle."""
    wave = 0.5 + 0.5 * math.sin(at / 90 + index)
    if index == 3:
        wave = 0.01
    highs = {
        "%": 96.0,
        "_bytes": 70.0 * GIB,
        "_bytes_s": 9e9,
        "power_w": 640.0,
        "temperature_c": 74.0,
        "_mhz": 1900.0,
    }
    high = next((value for end, value in highs.items() if metric.endswith(end)), 90.0)
    floor = 0.4 if metric in ("temperature_c", "sm_clock_mhz") else 0.0
    return None if metric.startswith("throttled") else high * (floor + (1 - floor) * wave)


@dataclass
class FakeHub:
    """`gaps`: spans in which nothing is known. `asked`: the queries that came. `added_at`: when the node was
    added."""

    gpus: int = 8
    curve: Curve = usual
    gaps: list[tuple[float, float]] = field(default_factory=list)
    added_at: datetime | None = None
    refuse: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    sockets: list[WebSocket] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None
    address: str = ""

    def reset(self, **facts: Any) -> None:
        """Makes it new for the next test, at the same address."""
        eventually(lambda: not self.sockets, what="the pages of the last test have closed")
        vars(self).update(vars(FakeHub(address=self.address, **facts)))

    def say(self, message: dict[str, Any]) -> None:
        """To every page that listens."""
        assert self.loop is not None
        for socket in list(self.sockets):
            asyncio.run_coroutine_threadsafe(socket.send_json(message), self.loop).result(5)

    def sample(self, at: int, **values: float | None) -> None:
        """A second of samples in which every GPU tells the same."""
        told = [[[*values.values()] for _ in range(self.gpus)]]
        subjects = [f"GPU-{index}" for index in range(self.gpus)]
        gpus = {"subjects": subjects, "metrics": list(values), "values": told}
        self.say({"type": "telemetry.sampled", "node": "alpha", "start": at, "step_s": 1, "gpus": gpus})

    def answer(self, asked: dict[str, str]) -> dict[str, Any]:
        start, end, points = float(asked["from"]), float(asked["to"]), int(asked["points"])
        step = max(10, math.ceil((end - start) / points / 10) * 10)
        times = [
            at for at in range(int(start // step * step), int(end), step) if at + step <= time.time() + 5
        ]

        def series(metrics: str, index: int) -> dict[str, Any]:
            told = {}
            for metric in filter(None, metrics.split(",")):
                mean = [None if self._in_gap(at) else self.curve(metric, index, at) for at in times]
                if any(value is not None for value in mean):
                    told[metric] = {"mean": mean, "max": [value and value * 1.04 for value in mean]}
            return told

        gpus = [
            {
                "uuid": f"GPU-{index}",
                "index": index,
                "name": "NVIDIA H200",
                "series": series(asked["metrics"], index),
            }
            for index in range(self.gpus)
        ]
        host = series(asked["host"], 0)
        return {
            "node": "alpha",
            "from": start,
            "to": end,
            "step_s": step,
            "times": times,
            "host": host,
            "gpus": gpus,
        }

    def _in_gap(self, at: float) -> bool:
        return any(begin <= at < end for begin, end in self.gaps)

    async def _series(self, request: Request) -> JSONResponse:
        asked = dict(request.query_params)
        self.asked.append(asked)
        return JSONResponse({"detail": self.refuse}, 400) if self.refuse else JSONResponse(self.answer(asked))

    async def _telemetry(self, socket: WebSocket) -> None:
        await socket.accept()
        self.loop = asyncio.get_running_loop()
        self.sockets.append(socket)
        try:
            while True:
                await socket.receive_text()
        except WebSocketDisconnect:
            self.sockets.remove(socket)

    async def _page(self, request: Request) -> HTMLResponse:
        return HTMLResponse(await asyncio.to_thread(page, self, request.query_params.get("nodes", "alpha")))


def page(hub: FakeHub, nodes: str) -> str:
    """The partials of the node's page, without Django's views around them."""
    gpus = [
        Gpu(uuid=f"GPU-{index}", index=index, name="NVIDIA H200", memory_bytes=140 * GIB)
        for index in range(hub.gpus)
    ]
    context = {
        "charts": chart_config(gpus, nodes={"alpha": 256 * GIB}),
        "series": "/api/v1/nodes/alpha/series/",
        "nodes": nodes,
        "added_at": hub.added_at,
    }
    styles = "".join(
        f'<link rel="stylesheet" href="/static/{path}">'
        for path in (
            "bootstrap/css/bootstrap.min.css",
            "css/tokens.css",
            "css/base.css",
            "css/components.css",
            "css/charts.css",
        )
    )
    scripts = '<script src="/static/js/theme.js"></script>' + render_to_string(
        "clusters/_charts_scripts.html"
    )
    body = render_to_string("clusters/_charts.html", context)
    return (
        f'<!doctype html><html lang="en"><head>{styles}{scripts}</head><body><main '
        f'class="th-page">{body}</main></body></html>'
    )


@contextmanager
def fake_hub(**facts: Any) -> Iterator[FakeHub]:
    hub = FakeHub(**facts)
    routes = [
        Route("/", hub._page),
        Route("/api/v1/nodes/alpha/series/", hub._series),
        WebSocketRoute("/ws/telemetry/", hub._telemetry),
        Mount("/static", HubStatic()),
    ]
    with served(Starlette(routes=routes)) as address:
        hub.address = address
        yield hub
