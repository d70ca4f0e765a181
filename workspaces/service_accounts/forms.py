from __future__ import annotations

from django import forms

from workspaces.forms import TokenForm
from workspaces.service_accounts.accounts import MAX_NAME, ROLES
from workspaces.states import Role, TokenScope

ROLE_CHOICES = [(role.value, role.value) for role in ROLES]


class ServiceAccountForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME,
        help_text="What uses it, for example: ci-nightly. People and service accounts share their names.",
    )
    role = forms.TypedChoiceField(
        choices=ROLE_CHOICES,
        coerce=Role,
        initial=Role.CONTRIBUTOR,
        help_text="A viewer can read everything here, a contributor can also run programs on the nodes.",
    )


class ServiceRoleForm(forms.Form):
    role = forms.TypedChoiceField(choices=ROLE_CHOICES, coerce=Role)


class ServiceTokenForm(TokenForm):
    """The form for a person's token, without the choice of workspaces: a service account has one."""

    def __init__(self, data: object = None) -> None:
        super().__init__(data, label_suffix="")  # type: ignore[arg-type]
        del self.fields["workspaces"]
        self.fields["name"].help_text = "A name that says where the token is used, for example: pipeline."
        self.fields["scope"].initial = TokenScope.SUBMIT
