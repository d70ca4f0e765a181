"""Why an attempt failed: which of its ranks was the first to fail, what it said, and what to do."""

from __future__ import annotations

from jobs.causes.attempt_cause import find
from jobs.causes.cause import Cause
from jobs.causes.cause_store import of, store, store_soon, with_lines

__all__ = ["Cause", "find", "of", "store", "store_soon", "with_lines"]
