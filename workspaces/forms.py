from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from workspaces.access import NO_WORKSPACE, may_enter
from workspaces.authentication import password_check
from workspaces.authentication.delays import AuthenticationDelayed
from workspaces.models import User
from workspaces.states import Role, TokenScope
from workspaces.tokens import DEFAULT_LIFETIME_DAYS, LIFETIMES_DAYS

ROLE_CHOICES = [(role.value, role.value) for role in Role]
ROLE_HELP = (
    "A viewer can read everything here, a contributor can also run programs on the nodes, and an "
    "owner can also manage people."
)
SCOPE_CHOICES = [(scope.value, scope.words) for scope in reversed(TokenScope)]
THIS, ALL = "this", "all"
NO_END = "none"
LIFETIME_CHOICES = [*((str(days), f"in {days} days") for days in LIFETIMES_DAYS), (NO_END, "never")]


class SignInForm(AuthenticationForm):
    """Django's form, with the throttle of sign-ins. `retry_after_s`: not 0 if the password was not checked,
    and may be tried again after so many seconds."""

    retry_after_s = 0
    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "The user name or the password is wrong. Both are case-sensitive.",
    }

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and not self.is_valid() and self.data.get("username"):
            # The password is empty again, and is what has to be typed.
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True

    @sensitive_variables()
    def clean(self) -> dict[str, object]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if name is None or not password:
            return self.cleaned_data
        try:
            user = password_check.sign_in(self.request, name, password)
        except AuthenticationDelayed as delay:
            self.retry_after_s = delay.retry_after_s
            raise ValidationError(delay.message, code="delayed") from delay
        if user is None:
            raise self.get_invalid_login_error()
        self.confirm_login_allowed(user)
        self.user_cache = user
        return self.cleaned_data

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if not may_enter(user, str(self.data.get("next", ""))):
            raise ValidationError(NO_WORKSPACE.format(name=user.get_username()))


class ChangePasswordForm(PasswordChangeForm):
    """Django's form, with the same throttle and the question whether API tokens are to be revoked."""

    revoke_tokens = forms.BooleanField(
        required=False,
        initial=True,
        label="Revoke my API tokens too",
        help_text=(
            "Leave this on if somebody else may know your password. Programs that use a token will then "
            "need a new one."
        ),
    )

    def __init__(self, request: HttpRequest, user: User, data: object = None) -> None:
        super().__init__(user, data, label_suffix="")
        self._request = request
        self.retry_after_s = 0
        # Django's own is a list in HTML; help texts are shown as text here.
        self.fields["new_password1"].help_text = " ".join(password_validators_help_texts())
        if user.password_is_one_time:
            # Nobody had the password to themselves yet, and so no token.
            del self.fields["revoke_tokens"]

    def clean_old_password(self) -> str:
        password = str(self.cleaned_data["old_password"])
        try:
            is_right = password_check.is_password_of(self._request, self.user, password)
        except AuthenticationDelayed as delay:
            self.retry_after_s = delay.retry_after_s
            raise ValidationError(delay.message, code="delayed") from delay
        if not is_right:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return password


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100, help_text="A name that says where you will use the token, for example: laptop."
    )
    scope = forms.TypedChoiceField(
        choices=SCOPE_CHOICES,
        coerce=TokenScope,
        initial=TokenScope.WRITE,
        required=False,
        empty_value=TokenScope.WRITE,
        label="Access",
        help_text="Reading is enough for dashboards, logging for MLflow on another machine.",
    )
    workspaces = forms.ChoiceField(
        choices=[(THIS, "this workspace"), (ALL, "all of mine")],
        initial=THIS,
        required=False,
        label="Acts in",
        help_text="With all of yours, each request has to name one.",
    )
    expires = forms.ChoiceField(
        choices=LIFETIME_CHOICES,
        initial=str(DEFAULT_LIFETIME_DAYS),
        required=False,
        label="Expires",
        help_text="The token is refused after this time.",
    )

    @property
    def is_for_all(self) -> bool:
        return bool(self.cleaned_data["workspaces"] == ALL)

    @property
    def lifetime(self) -> timedelta | None:
        """For how long the token is to be valid; None = without end."""
        chosen = self.cleaned_data["expires"] or str(DEFAULT_LIFETIME_DAYS)
        return None if chosen == NO_END else timedelta(days=int(chosen))


class MemberForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text=(
            "A new user gets a one-time password, which is shown here once. An existing user is invited "
            "and can accept or decline."
        ),
    )
    role = forms.TypedChoiceField(
        choices=ROLE_CHOICES, coerce=Role, initial=Role.CONTRIBUTOR, help_text=ROLE_HELP
    )


class RoleForm(forms.Form):
    role = forms.TypedChoiceField(choices=ROLE_CHOICES, coerce=Role)
