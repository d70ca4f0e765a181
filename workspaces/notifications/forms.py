from __future__ import annotations

from django import forms
from django.http import QueryDict

from workspaces.models import Channel
from workspaces.notifications.channels import KINDS, MAIL, WEBHOOK, has_mail, target_label
from workspaces.notifications.events import CHOICES, USUAL

KIND_WORDS = {WEBHOOK: "Webhook (Slack, Mattermost, your own)", MAIL: "Mail"}


class ChannelForm(forms.Form):
    """The form of a new channel, or (with `channel`) of an existing one, whose kind cannot be changed and
    whose secrets are not shown."""

    kind = forms.ChoiceField(choices=[(kind, KIND_WORDS[kind]) for kind in KINDS])
    name = forms.CharField(max_length=100, help_text="For example: ops in Slack.")
    target = forms.CharField(
        max_length=1000,
        label="Address",
        help_text=(
            "The webhook's URL, or an email address. In the path of a URL, {secret:NAME} stands for a stored "
            "secret."
        ),
    )
    secret = forms.CharField(
        max_length=200,
        required=False,
        label="Signing secret",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=(
            "Optional, for webhooks only. Each message is signed with this secret, so that the receiver "
            "can verify it. {secret:NAME} stands for a stored secret."
        ),
    )
    events = forms.MultipleChoiceField(
        choices=list(CHOICES.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=USUAL,
        label="Notify when",
    )
    ours_only = forms.BooleanField(
        required=False,
        label="Limit alerts to those about GPUs that a run of this workspace holds",
    )

    def __init__(self, data: QueryDict | None, *, channel: Channel | None = None) -> None:
        super().__init__(data, label_suffix="")
        if not has_mail():
            self.fields["kind"].choices = [(WEBHOOK, KIND_WORDS[WEBHOOK])]  # type: ignore[attr-defined]
            self.fields["kind"].help_text = "For mail, an operator has to name a mail server (EMAIL_URL)."
        if channel is not None:
            del self.fields["kind"]
            self.fields["target"].required = False
            self.fields["target"].help_text = f"Leave empty to keep {target_label(channel)}."
            self.fields["secret"].help_text = (
                "Leave empty to keep the current secret." if channel.secret else "Optional."
            )
            self.initial = {"name": channel.name, "events": channel.events, "ours_only": channel.ours_only}
