"""Template tags for parts of pages whose text is too long for an argument of `include`.

The content between the tags has been rendered, and escaped, already. It is passed on unchanged: any string
method would return text that is escaped a second time."""

from __future__ import annotations

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

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


@register.simple_block_tag(takes_context=True)
def danger_form(context: Context, content: str, action: str, verb: str) -> str:
    """Renders a button that ends something at the address `action`, in a row of a table; the content between
    the tags is the question that has to be confirmed first."""
    # The dialog takes the first line as its title. Escaped already, so it stays marked as that.
    question = SafeString(" ".join(content.split()))
    values = {"action": action, "verb": verb, "question": question, "csrf_token": context.get("csrf_token")}
    return render_to_string("components/_danger_form.html", values)
