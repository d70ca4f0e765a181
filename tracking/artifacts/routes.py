"""Every raw route that moves artifacts; they stand before Django and before the rest of MLflow's protocol."""

from __future__ import annotations

from tracking.artifacts import multipart, protocol

routes = [*protocol.routes, *multipart.routes]
