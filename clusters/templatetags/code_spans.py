"""Sentences with commands in them."""

from __future__ import annotations

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def code_spans(sentence: str) -> SafeString:
    """Returns the sentence with what is between backticks as code."""
    parts = [
        format_html("<code>{}</code>", text) if place % 2 else conditional_escape(text)
        for place, text in enumerate(sentence.split("`"))
    ]
    return mark_safe("".join(parts))  # noqa: S308 - each part was escaped
