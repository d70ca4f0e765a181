"""A framework in the table for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.frameworks.framework import Framework


@contextmanager
def temporary_framework(framework: Framework) -> Iterator[None]:
    assert framework.name not in FRAMEWORKS
    FRAMEWORKS[framework.name] = framework
    try:
        yield
    finally:
        del FRAMEWORKS[framework.name]
