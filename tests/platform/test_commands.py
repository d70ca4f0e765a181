"""TrainHub's own commands of manage.py."""

from __future__ import annotations

from django.conf import settings
from django.core.management import get_commands, load_command_class

from tests.hub import PROJECT
from workspaces.management.hub_command import HubCommand


def test_all_start_without_loading_every_page() -> None:
    own = {name: app for name, app in get_commands().items() if (PROJECT / app / "management").is_dir()}
    assert {"node", "token", "prepare"} <= own.keys()
    assert set(own.values()) <= set(settings.INSTALLED_APPS)
    for name, app in own.items():
        assert isinstance(load_command_class(app, name), HubCommand), name
