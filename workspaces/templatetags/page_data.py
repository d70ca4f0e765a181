"""Template filter for data that a page's JavaScript modules read from the page."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.core.serializers.json import DjangoJSONEncoder

register = template.Library()


@register.filter
def as_json(value: Any) -> str:
    """Returns `value` as JSON, for the text of a hidden element whose textContent a module parses.

    Django's json_script makes a script element, and htmx removes these from every fragment that it inserts
    (allowScriptTags=false), so that charts in it would have nothing to draw."""
    return json.dumps(value, cls=DjangoJSONEncoder)
