"""Causes of failed attempts: the rank that failed first, the error in its log, and the remedy."""

from __future__ import annotations

from jobs.causes.attempt_cause import find_cause
from jobs.causes.cause import Cause
from jobs.causes.cause_store import annotate_lines, for_run, store_cause, store_soon

__all__ = ["Cause", "annotate_lines", "find_cause", "for_run", "store_cause", "store_soon"]
