"""Models of logged data, saved views, stars and usage."""

from __future__ import annotations

from tracking.models.histograms import Histogram
from tracking.models.history import SavedView, Star, UsageEntry
from tracking.models.logged import LoggedModel, LoggedModelFile, RunInput, RunOutput
from tracking.models.metrics import EventFile, Metric, MetricBlock, MetricSlice
from tracking.models.panels import PanelLayout
from tracking.models.params import Param

__all__ = [
    "EventFile",
    "Histogram",
    "LoggedModel",
    "LoggedModelFile",
    "Metric",
    "MetricBlock",
    "MetricSlice",
    "PanelLayout",
    "Param",
    "RunInput",
    "RunOutput",
    "SavedView",
    "Star",
    "UsageEntry",
]
