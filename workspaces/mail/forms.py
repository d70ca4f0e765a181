from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password
from django.core.exceptions import ValidationError

from workspaces.forms import ROLE_CHOICES, ROLE_HELP
from workspaces.mail.errors import MailError
from workspaces.mail.invitation_links import check_username
from workspaces.mail.mail_addresses import MAX_LENGTH
from workspaces.models import User, Workspace
from workspaces.states import Role

MAX_DISPLAY_NAME = 100


class ProfileForm(forms.Form):
    display_name = forms.CharField(
        max_length=MAX_DISPLAY_NAME,
        required=False,
        help_text="Shown beside your user name, for example: Ada Lovelace. Empty: only the user name.",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def clean_display_name(self) -> str:
        name = " ".join(str(self.cleaned_data["display_name"]).split())
        # Invisible characters could make a name look like that of somebody else.
        if not name.isprintable():
            raise ValidationError("Use letters, digits, punctuation and spaces only.")
        return name


class MailForm(forms.Form):
    address = forms.CharField(
        max_length=MAX_LENGTH,
        label="New address",
        help_text="A link is sent there. The address is yours once you have opened the link.",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )


class ForgotForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_LENGTH,
        label="User name or mail address",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    retry_after_s = 0


class InvitationForm(forms.Form):
    workspace = forms.ModelChoiceField(Workspace.objects.none(), empty_label=None)
    role = forms.TypedChoiceField(
        choices=ROLE_CHOICES, coerce=Role, initial=Role.CONTRIBUTOR, help_text=ROLE_HELP
    )
    address = forms.CharField(
        max_length=MAX_LENGTH,
        required=False,
        label="Mail address",
        help_text="Where the link is sent. Empty: the link is shown here, once, and you pass it on.",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )

    def __init__(
        self, workspaces: Sequence[Workspace], data: object = None, *, initial: object = None
    ) -> None:
        super().__init__(data, label_suffix="", initial=initial)  # type: ignore[arg-type]
        choice = self.fields["workspace"]
        assert isinstance(choice, forms.ModelChoiceField)  # noqa: S101 - for the type checker
        choice.queryset = Workspace.objects.filter(pk__in=[item.pk for item in workspaces]).order_by("name")


class NewAccountForm(forms.Form):
    """`retry_after_s`: not 0 if nothing was made, and the same may be sent again after so many seconds."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="Letters, digits and @ . + - _",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    new_password1 = forms.CharField(
        label="Password", strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )
    new_password2 = forms.CharField(
        label="Password, again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    retry_after_s = 0

    def __init__(self, address: str, data: object = None) -> None:
        super().__init__(data, label_suffix="")  # type: ignore[arg-type]
        self._address = address
        self.fields["new_password1"].help_text = " ".join(password_validators_help_texts())

    def clean_username(self) -> str:
        username = User.normalize_username(str(self.cleaned_data["username"]))
        try:
            check_username(username)
        except MailError as error:
            raise ValidationError(sentence(error)) from error
        return username

    def clean(self) -> dict[str, object]:
        first, second = (str(self.cleaned_data.get(f"new_password{number}", "")) for number in (1, 2))
        if first and second and first != second:
            self.add_error("new_password2", "The two passwords differ.")
        elif first:
            person = User(username=str(self.cleaned_data.get("username", "")), email=self._address)
            try:
                validate_password(first, person)
            except ValidationError as error:
                self.add_error("new_password1", error)
        return self.cleaned_data


def sentence(error: MailError, name: str = "") -> str:
    """Returns the message of an error as a sentence, which begins with `name`, what the field is called."""
    text = f"{name} {error.message}".strip()
    return f"{text[:1].upper()}{text[1:]}."
