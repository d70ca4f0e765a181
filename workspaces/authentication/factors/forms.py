from __future__ import annotations

from django import forms

from workspaces.authentication.factors.proof import MAX_CODE, MAX_CREDENTIAL

CODE_ATTRIBUTES = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false"}


class SecondStepForm(forms.Form):
    """`credential`: a browser's answer for a passkey, which a script fills in. `retry_after_s`: not 0 if
    nothing was compared, and may be tried again after so many seconds."""

    code = forms.CharField(
        max_length=MAX_CODE,
        required=False,
        help_text="Six digits of your app, or one of your recovery codes.",
        widget=forms.TextInput(attrs={**CODE_ATTRIBUTES, "autofocus": True}),
    )
    credential = forms.CharField(max_length=MAX_CREDENTIAL, required=False, widget=forms.HiddenInput)
    retry_after_s = 0


class SetupCodeForm(forms.Form):
    code = forms.CharField(
        max_length=MAX_CODE,
        label="Code",
        help_text="The six digits that the app shows now.",
        widget=forms.TextInput(attrs={**CODE_ATTRIBUTES, "inputmode": "numeric"}),
    )


class PasskeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="Name",
        help_text="A name by which you recognise it, for example: laptop.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    credential = forms.CharField(max_length=MAX_CREDENTIAL, widget=forms.HiddenInput)
