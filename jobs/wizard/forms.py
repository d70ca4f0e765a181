"""What the step forms share: they are always bound to raw typed data and yield one frozen part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.utils.datastructures import MultiValueDict

Part = TypeVar("Part")
Raw = dict[str, list[str]]
"""A step's form data exactly as typed, the way a draft stores it."""


class StepForm(forms.Form, Generic[Part]):
    """`part()` needs a valid form; `raw(part)` is its inverse."""

    template = ""
    held: ClassVar[frozenset[str]] = frozenset()
    """Fields that are set by other means than typing, such as an upload; a post of the form never changes
    them."""

    def __init__(self, raw: Raw) -> None:
        super().__init__(MultiValueDict(raw))
        self.typed = raw
        for name, field in self.fields.items():
            field.widget.attrs |= {"aria-describedby": f"finding-{name}"}

    def add_field(self, name: str, field: forms.Field) -> None:
        """For a form whose fields are known only when it is made."""
        field.widget.attrs |= {"aria-describedby": f"finding-{name}"}
        self.fields[name] = field

    def part(self) -> Part:
        raise NotImplementedError

    @classmethod
    def raw(cls, part: Part) -> Raw:
        raise NotImplementedError

    @property
    def paths(self) -> Mapping[str, str]:
        """Spec field (`distribution.process_count`) -> the form field it is typed into."""
        raise NotImplementedError

    def keep_errors_of(self, names: set[str]) -> None:
        """Forget errors of fields that the present choice hides; their typed text stays."""
        for name in set(self.errors) - names - {"__all__"}:
            del self.errors[name]

    def column(self, name: str) -> list[str]:
        """The typed values of a repeated field."""
        return [value.replace("\r\n", "\n") for value in self.typed.get(name, [])]


def below(path: str, prefixes: Mapping[str, str]) -> str | None:
    """The entry of the longest prefix that `path` equals or lies below (`limits.grace_s`, `arguments[2]`)."""
    fitting = [
        prefix for prefix in prefixes if path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
    ]
    return prefixes[max(fitting, key=len)] if fitting else None


def whole_number(
    label: str, *, least: int, most: int, help_text: str = "", required: bool = True
) -> forms.IntegerField:
    """A field whose every refusal says what is allowed."""
    sentence = f"must be a whole number between {least} and {most}"
    attrs: dict[str, Any] = {"inputmode": "numeric", "autocomplete": "off"}
    return forms.IntegerField(
        label=label,
        min_value=least,
        max_value=most,
        required=required,
        help_text=help_text,
        widget=forms.NumberInput(attrs=attrs),
        error_messages={
            "required": f"{label}: {sentence}.",
            "invalid": f"{label}: {sentence}.",
            "min_value": f"{label}: {sentence}.",
            "max_value": f"{label}: {sentence}.",
        },
    )
