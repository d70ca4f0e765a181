from __future__ import annotations

from django import forms
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.password_validation import password_validators_help_texts

from workspaces.administration.workspace_changes import MAX_NAME, MAX_SLUG
from workspaces.models import User

LET_FINISH, CANCEL = "finish", "cancel"


class ChoosePasswordForm(SetPasswordForm):  # type: ignore[type-arg]
    """Django's form for a new password without the old one. `retry_after_s`: not 0 if the password was not
    stored, and may be sent again after so many seconds."""

    retry_after_s = 0

    def __init__(self, user: User, data: object = None) -> None:
        super().__init__(user, data, label_suffix="")
        # Django's own is a list in HTML; help texts are shown as text here.
        self.fields["new_password1"].help_text = " ".join(password_validators_help_texts())


class DeactivateForm(forms.Form):
    runs = forms.ChoiceField(
        choices=[(LET_FINISH, "Let them finish"), (CANCEL, "Cancel them")],
        initial=LET_FINISH,
        required=False,
        label="Runs that have not ended",
        widget=forms.RadioSelect,
    )

    @property
    def cancels_runs(self) -> bool:
        return bool(self.cleaned_data["runs"] == CANCEL)


class WorkspaceForm(forms.Form):
    name = forms.CharField(max_length=MAX_NAME, help_text="As pages show it, for example: Vision research.")
    slug = forms.CharField(
        max_length=MAX_SLUG,
        required=False,
        label="Short name",
        help_text="For the API and the command line; it cannot be changed. Empty: made from the name.",
    )
    owner = forms.CharField(
        max_length=150,
        required=False,
        label="First owner",
        help_text="The user name of somebody with an account here. Empty: yourself.",
    )

    def clean_owner(self) -> User | None:
        """Returns the person, or None for an empty field."""
        name = str(self.cleaned_data["owner"]).strip()
        if not name:
            return None
        owner = User.objects.filter(username=name).first()
        if owner is None:
            raise forms.ValidationError(
                f"Nobody here is called {name}; user names are case-sensitive. See the list of people."
            )
        return owner


class RenameForm(forms.Form):
    name = forms.CharField(max_length=MAX_NAME)
