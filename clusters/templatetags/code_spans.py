"""Sentences with commands in them."""

from __future__ import annotations

from typing import NamedTuple

from django import template

register = template.Library()


class SentencePart(NamedTuple):
    text: str
    is_code: bool


@register.filter
def code_parts(sentence: str) -> list[SentencePart]:
    """Returns the parts of the sentence; what is between backticks is code."""
    return [SentencePart(text, bool(place % 2)) for place, text in enumerate(sentence.split("`"))]
