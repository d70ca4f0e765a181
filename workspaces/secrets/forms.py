from __future__ import annotations

from django import forms
from django.http import QueryDict

from workspaces.access import Principal
from workspaces.secrets import store

SCOPE_WORDS = {store.WORKSPACE: "All members of the workspace", store.PERSON: "Only me"}


class SecretForm(forms.Form):
    """The form of a value: a new one, or in place of that of an existing secret of the same name."""

    name = forms.CharField(
        max_length=64,
        help_text="For example: hf-token.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}),
    )
    value = forms.CharField(
        strip=False,
        help_text="It is encrypted, and nobody can read it here again.",
        widget=forms.Textarea(
            attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false", "class": "th-mono"}
        ),
    )
    scope = forms.ChoiceField(label="Whose runs may use it", choices=[])

    def __init__(self, data: QueryDict | None, *, principal: Principal) -> None:
        super().__init__(data, label_suffix="")
        # The first that the person may choose is the default.
        self.fields["scope"].choices = [  # type: ignore[attr-defined]
            (scope, words) for scope, words in SCOPE_WORDS.items() if principal.may(store.NEEDED[scope])
        ]

    def clean_value(self) -> str:
        # Browsers send line ends as CRLF, with which keys in PEM do not work everywhere.
        value: str = self.cleaned_data["value"]
        return value.replace("\r\n", "\n")
