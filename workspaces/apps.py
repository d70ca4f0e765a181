from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.utils.module_loading import import_string


class WorkspacesConfig(AppConfig):
    name = "workspaces"

    def ready(self) -> None:
        # Looked up by name: it needs the models, which are loaded only now.
        receiver = import_string("workspaces.authentication.confirmation.confirm_by_sign_in")
        import_string("workspaces.checks.rows_set_aside")
        user_logged_in.connect(receiver, dispatch_uid="workspaces.authentication.confirmation")
        note, forget = (
            import_string(f"workspaces.authentication.sessions.{name}")
            for name in ("note_sign_in", "forget_sign_out")
        )
        user_logged_in.connect(note, dispatch_uid="workspaces.authentication.sessions")
        user_logged_out.connect(forget, dispatch_uid="workspaces.authentication.sessions")
