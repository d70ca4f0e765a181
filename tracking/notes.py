"""Notes in Markdown: of runs (the tag `mlflow.note.content`), of model versions, of files ending in .md."""

from __future__ import annotations

from collections.abc import Sequence

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

TAG = "mlflow.note.content"
MAX_LENGTH = 100_000
# Each `[` makes the parser look for its partner, so that the time grows with their square: 0.4 s for so many.
MAX_BRACKETS = 20_000
TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}


def render(text: str) -> SafeString:
    """Returns safe HTML. Tags in the text are escaped; images become links, since pages load nothing from
    other sites. A text with more brackets than MAX_BRACKETS is shown as plain text."""
    source = text[:MAX_LENGTH]
    html = _markdown.render(source) if source.count("[") <= MAX_BRACKETS else f"<pre>{escape(source)}</pre>"
    clean = nh3.clean(
        html, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES, link_rel="noopener noreferrer nofollow"
    )
    return mark_safe(clean)  # noqa: S308 - nh3 has just cleaned it


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        word = self.renderInlineAsText(token.children or [], options, env) or "image"
        return f'<a href="{escape(str(token.attrGet("src") or ""))}">{escape(word)}</a>'


_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)
