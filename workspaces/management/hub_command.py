"""The base of all commands of TrainHub."""

from __future__ import annotations

from django.core.management.base import BaseCommand

# The tag of checks of what may be wrong with an installation, as opposed to the code.
INSTALLATION = "installation"


class HubCommand(BaseCommand):
    """A command before which only the installation is checked. Django's other checks load every page and API
    view, which takes three times as long as most commands; the web server loads them, too."""

    requires_system_checks = [INSTALLATION]
