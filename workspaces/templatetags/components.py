"""Template tags for parts of pages whose text is too long for an argument of `include`.

The content between the tags has been rendered, and escaped, already. It is passed on unchanged: any string
method would return text that is escaped a second time."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string

register = template.Library()


@register.simple_block_tag
def empty_state(
    content: str, title: str, icon: str = "", url: str = "", label: str = "", *, is_page: bool = False
) -> str:
    """Renders what a page shows instead of an empty list; the content between the tags is the sentence with
    the next step. `is_page`: nothing else is on the page, so the title is its heading."""
    context = {
        "title": title,
        "icon": icon,
        "sentence": content,
        "url": url,
        "label": label,
        "is_page": is_page,
    }
    return render_to_string("components/_empty.html", context)


@register.simple_block_tag
def note(content: str, level: str, title: str = "") -> str:
    """Renders a coloured box with an icon. `level`: error, warning or hint; the content between the tags is
    the message."""
    return render_to_string("components/_note.html", {"level": level, "title": title, "message": content})
