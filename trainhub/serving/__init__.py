"""The hub's web server: uvicorn with limits on slow clients, trusted proxies, and a check of the Host
header."""

from __future__ import annotations

# Environment variable with the descriptor of a pipe, of which `manage.py up` closes the other end when the
# database is ready.
START_GATE = "TRAINHUB_START_GATE"
