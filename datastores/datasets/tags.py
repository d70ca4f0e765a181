"""Tags of datasets: names with values, which people set, and by which they find datasets."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import QuerySet

from datastores.models import Dataset
from trainhub_launch.errors import SpecError

MAX_TAGS, MAX_KEY_LENGTH, MAX_VALUE_LENGTH = 50, 250, 500


def merge_tags(tags: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the tags with the changed ones; None removes one. Raises SpecError."""
    for key, value in changed.items():
        _check_text(key, MAX_KEY_LENGTH, "the name of a tag")
        if not key.strip() or "=" in key:
            raise SpecError("tags", "the name of a tag must be text without '=', such as species")
        if value is not None:
            _check_text(value, MAX_VALUE_LENGTH, f"the value of {key}")
    merged = {key: value for key, value in {**tags, **changed}.items() if value is not None}
    if len(merged) > MAX_TAGS:
        raise SpecError("tags", f"a dataset has at most {MAX_TAGS} tags; remove one first")
    return merged


def parse_tag(text: str) -> tuple[str, str]:
    """Returns the name and the value of what was typed as name=value. Raises SpecError."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise SpecError("tag", "write it as name=value, such as species=owl")
    return key.strip(), value.strip()


def filter_by_tag(datasets: QuerySet[Dataset], query: str) -> QuerySet[Dataset]:
    """Returns those that have the tag which a query names: "name=value", or "name" for any value."""
    key, sign, value = query.partition("=")
    # A workspace has few datasets, and databases differ in how they look into JSON.
    rows = datasets.values_list("pk", "tags")
    keys = [pk for pk, tags in rows if key in tags and (not sign or tags[key] == value)]
    return datasets.filter(pk__in=keys)


def _check_text(text: str, max_length: int, what: str) -> None:
    is_text = all(ord(sign) >= 32 and not 0xD800 <= ord(sign) < 0xE000 for sign in text)
    if len(text) > max_length or not is_text:
        raise SpecError("tags", f"{what:.60} must have at most {max_length} characters, and no line breaks")
