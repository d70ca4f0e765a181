from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from workspaces import brake
from workspaces.access import membership_principal
from workspaces.states import Role

ROLE_CHOICES = [(role.value, role.value) for role in Role]
ROLE_HELP = "A viewer reads everything here, a contributor also runs programs on the nodes, an owner also manages people."


class SignInForm(AuthenticationForm):
    """Django's form behind a brake against guessing."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "The user name or the password is wrong. Both tell capital letters from small ones.",
    }

    def clean(self) -> dict[str, Any]:
        name, address = self.cleaned_data.get("username", ""), self._address()
        seconds = brake.wait_s(name, address)
        if seconds:
            raise ValidationError(f"Too many failed attempts. Wait {seconds} seconds, then try again.")
        try:
            cleaned = super().clean()
        except ValidationError:
            brake.failed(name, address)
            raise
        brake.succeeded(name, address)
        return cleaned

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if membership_principal(user) is None:
            raise ValidationError("You are not a member of any workspace here. Ask an owner to add you, then sign in again.")

    def _address(self) -> str:
        return "" if self.request is None else self.request.META.get("REMOTE_ADDR", "")


class TokenForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="Where you will use it, for example: laptop.")


class MemberForm(forms.Form):
    username = forms.CharField(
        max_length=150, label="User name", help_text="Somebody new gets a one-time password, shown here once."
    )
    role = forms.TypedChoiceField(choices=ROLE_CHOICES, coerce=Role, initial=Role.CONTRIBUTOR, help_text=ROLE_HELP)


class RoleForm(forms.Form):
    role = forms.TypedChoiceField(choices=ROLE_CHOICES, coerce=Role)
