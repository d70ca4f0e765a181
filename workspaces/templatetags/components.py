"""Parts of pages whose text is longer than an argument of `include` should be."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string

register = template.Library()


@register.simple_block_tag
def empty_state(content: str, title: str, icon: str = "", url: str = "", label: str = "") -> str:
    """What a page shows instead of an empty list; the content between the tags is the sentence with the next
    step."""
    context = {"title": title, "icon": icon, "sentence": content.strip(), "url": url, "label": label}
    return render_to_string("components/_empty.html", context)


@register.simple_block_tag
def note(content: str, level: str, title: str = "") -> str:
    """A coloured box with an icon. `level`: error, warning or hint; the content between the tags is the
    message."""
    return render_to_string(
        "components/_note.html", {"level": level, "title": title, "message": content.strip()}
    )
