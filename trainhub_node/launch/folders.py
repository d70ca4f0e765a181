"""The folders of the agent on its machine."""

from __future__ import annotations

import os

from trainhub_node.environments import builder_account
from trainhub_node.launch import cache, wrapper
from trainhub_node.settings import NodeSettings


def prepare_folders(settings: NodeSettings) -> None:
    """Makes the folders of the agent's account; the account of the runs may pass through, but not list
    them."""
    wrapper.check_folders(settings)
    os.umask(0o077)
    through = 0o711 if settings.run_as else 0o700
    for folder in (settings.folder, settings.attempts, settings.cache, settings.environments):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(through)
    settings.snapshots.mkdir(exist_ok=True)
    wrapper.install_wrapper(settings)
    builder_account.kill_abandoned(str(settings.environments))
    cache.set_untrusted_aside(settings)
