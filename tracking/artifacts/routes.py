"""Every raw route that moves artifacts; they stand before Django and before the rest of MLflow's protocol."""

from __future__ import annotations

from tracking.artifacts import browsing, multipart, protocol

routes = [*protocol.routes, *multipart.routes, *browsing.routes]
