"""Loads the web server's code before it may serve, and without packages that it does not need."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import django
from django.db import connection

from trainhub.serving import START_GATE

# So many new objects lead to a collection of the youngest ones, and so many of these to one of older ones.
# With Python's own (700, 10, 10) a twentieth of the CPU time of a run went to looking for next to nothing.
THRESHOLDS = (10_000, 5, 5)
# What the REST framework loads wherever it is installed: for a test client and for its browsable API.
UNUSED = ("requests", "pygments", "markdown")


def load_application() -> None:
    """Imports the ASGI application and everything that it needs."""
    # All of it stays until the end: looking for garbage in it takes about a seventh of the start's CPU time,
    # and some of each later collection.
    gc.disable()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
    django.setup()
    # `django.contrib.postgres` has fields that only models on PostgreSQL may have.
    unused = UNUSED if connection.vendor == "postgresql" else (*UNUSED, "psycopg")
    with _hidden(unused):
        import_module("rest_framework.compat")
    import_module("trainhub.asgi")
    spare_lasting_objects()
    gc.enable()


def spare_lasting_objects() -> None:
    """Has the garbage collector look less often, and never again at what has been loaded until now."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def wait_for_start() -> None:
    """Waits until `manage.py up` has prepared the database. Returns at once in a server that was started
    without `up`."""
    descriptor = os.environ.pop(START_GATE, "")
    if descriptor:
        # Nothing is ever written: the read ends when the other end is closed. It stays so for a web server
        # that is started again.
        with os.fdopen(int(descriptor), "rb") as gate:
            gate.read()


@contextmanager
def _hidden(packages: tuple[str, ...]) -> Iterator[None]:
    """Makes imports of these packages fail as if they were not installed. They take 0.2 s and 20 MiB."""
    hidden = [name for name in packages if name not in sys.modules]
    for name in hidden:
        # None in sys.modules makes an import raise ModuleNotFoundError.
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
