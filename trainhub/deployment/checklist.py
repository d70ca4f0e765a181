"""All checks of `manage.py check --deploy` that are TrainHub's own."""

from __future__ import annotations

from django.core.checks import CheckMessage

from trainhub.deployment import key_checks, network_checks, operation_checks, server_checks

CHECKS = (
    network_checks.plain_http,
    network_checks.unnamed_proxies,
    network_checks.wide_proxies,
    network_checks.removed_headers,
    network_checks.wide_hosts,
    network_checks.unencrypted_broker,
    network_checks.unencrypted_log_systems,
    key_checks.debug_pages,
    key_checks.readable_keys,
    key_checks.old_backup,
    key_checks.uncopied_keyring,
    operation_checks.small_database,
    operation_checks.unindexed_names,
    operation_checks.no_mail,
    operation_checks.full_disk,
    operation_checks.wrong_clock,
    operation_checks.outdated_agents,
    server_checks.unequal_servers,
)


def deployment_messages() -> list[CheckMessage]:
    return [message for check in CHECKS for message in check()]
