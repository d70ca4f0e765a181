"""Template filters for the origin of a version."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django import template
from django.urls import NoReverseMatch, reverse

from tracking.dataset_inputs import CHANGED
from trainhub_launch.data.source_types import DATASET_SOURCE

register = template.Library()


@register.filter
def dataset_url(item: Mapping[str, str]) -> str:
    """Returns the page of the dataset's version that an input of a certificate is, "" for other inputs. A
    client can have logged anything under that type."""
    if item.get("source_type") != DATASET_SOURCE:
        return ""
    try:
        source = json.loads(item["source"])
        return reverse("dataset-version", args=[source["dataset"], source["version"]])
    except (ValueError, RecursionError, KeyError, TypeError, NoReverseMatch):
        return ""


@register.filter
def has_changed(item: Mapping[str, Mapping[str, str]]) -> bool:
    """Returns whether the run read other files than those of the dataset's version that the input names."""
    return CHANGED in item.get("tags", {})
