"""What a node can be ordered to do with a datastore."""

from __future__ import annotations

from enum import StrEnum

from trainhub_launch.data import probe_work


class DataWork(StrEnum):
    """TEST: whether it can read the datastore, and how fast. LIST: which files a dataset has there."""

    TEST = probe_work.TEST
    LIST = probe_work.LIST
