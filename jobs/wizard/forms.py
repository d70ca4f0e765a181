"""The base of the step forms: always bound to raw typed data, and yielding one frozen part of the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.utils.datastructures import MultiValueDict

Part = TypeVar("Part")
# A step's form data exactly as typed, the way a draft stores it.
Raw = dict[str, list[str]]


class StepForm(forms.Form, Generic[Part]):
    """The form of a wizard step. `part()` returns the step's part and requires a valid form; `raw(part)`
    returns the typed data that yields this part."""

    template = ""
    unvalidated_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that are set by other means than typing, such as an upload; a post of the form never changes
    them."""
    independent_fields: ClassVar[frozenset[str]] = frozenset()
    """Fields that say nothing about which processes run where. While only such fields are wrong, the rest of
    the draft is still checked, so that all problems are shown at once."""

    def __init__(self, raw: Raw) -> None:
        # Always bound: an untouched step gets the raw data of its defaults, so every form can be validated.
        super().__init__(MultiValueDict(raw))
        self.typed = raw
        for name, field in self.fields.items():
            field.widget.attrs |= {"aria-describedby": f"finding-{name}"}

    def add_field(self, name: str, field: forms.Field) -> None:
        """Adds a field that is known only when the form is created."""
        field.widget.attrs |= {"aria-describedby": f"finding-{name}"}
        self.fields[name] = field

    def part(self) -> Part:
        raise NotImplementedError

    @classmethod
    def raw(cls, part: Part) -> Raw:
        raise NotImplementedError

    @property
    def paths(self) -> Mapping[str, str]:
        """Returns spec field (`distribution.process_count`) -> name of the form field in which it is
        typed."""
        raise NotImplementedError

    def keep_errors_of(self, names: set[str]) -> None:
        """Removes the errors of all other fields, which the present choice hides; their typed text stays."""
        # The key `__all__` holds errors that belong to no single field.
        for name in set(self.errors) - names - {"__all__"}:
            del self.errors[name]

    def column(self, name: str) -> list[str]:
        """Returns the typed values of a repeated field, with line breaks as `LF`."""
        # Browsers submit every line break of a textarea as CRLF.
        return [value.replace("\r\n", "\n") for value in self.typed.get(name, [])]


def below(path: str, prefixes: Mapping[str, str]) -> str | None:
    """Returns the value for the longest prefix that `path` equals or is below (`limits.grace_s`,
    `arguments[2]`), or None."""
    fitting = [
        prefix for prefix in prefixes if path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
    ]
    return prefixes[max(fitting, key=len)] if fitting else None


def whole_number(
    label: str, *, least: int, most: int, help_text: str = "", required: bool = True
) -> forms.IntegerField:
    """Returns an integer field whose error messages all state the allowed range."""
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
