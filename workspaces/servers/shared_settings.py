"""What all servers of a hub must be given alike, as codes that show whether two servers have the same values
and tell nobody the values."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256

from django.conf import settings

from workspaces.secrets import keyring
from workspaces.secrets.errors import SecretsUnavailable

CODE_LENGTH = 20
SECRET_KEY, KEYRING = "SECRET_KEY", "SECRETS_KEYRING"
# A server that differs in one of these loses what people store, or sends them to another hub: it does not
# start.
GRAVE = frozenset({SECRET_KEY, KEYRING, "PUBLIC_URL", "API_URL", "BLOB_STORE", "BLOB_STORE_ENDPOINT"})
# Settings of Django of these names, or that begin so, hold what their variables say.
_NAMES = [
    "PUBLIC_URL",
    "API_URL",
    "NODE_BROKER_URL",
    "RABBITMQ_API_URL",
    "HSTS_SECONDS",
    "AUDIT_KEEP_DAYS",
    "NODE_UNREACHABLE_AFTER",
    "NODE_LOST_AFTER",
    "NEVER_STARTED_AFTER",
    "NEVER_READY_AFTER",
    "PREEMPT_AFTER_MINUTES",
    "FAIR_SHARE_HALF_LIFE_DAYS",
    "PURGE_DAYS",
    "LOG_ARCHIVE_AFTER_HOURS",
    "FETCH_ENVIRONMENT_FILES",
    "ENVIRONMENT_FILE_DAYS",
    "ENVIRONMENT_BUILD_TIMEOUT",
    "CONDA_CHANNEL_ALIAS",
    "CONDA_CHANNEL_FOLDERS",
    "PACKAGE_INDEX_HOSTS",
    "IMAGE_REGISTRY_HOSTS",
    "IMAGE_REGISTRY",
    "WEBHOOK_PROXY",
    "WEBHOOK_HOSTS",
    "EMAIL_URL",
    "CSRF_TRUSTED_ORIGINS",
]
_PREFIXES = ("ALERT_", "MAX_", "METRIC_", "MODEL_SCAN_", "PROVIDER_", "TELEMETRY_KEEP_")
# Under other names in Django's settings.
_RENAMED = {
    "SESSION_DAYS": "SESSION_COOKIE_AGE",
    "EMAIL_FROM": "DEFAULT_FROM_EMAIL",
    "SIGN_IN": "SIGN_IN",
    "SHIP_LOGS_TO": "LOG_DESTINATION",
    "SHIP_LOGS_LINE_BYTES": "LOG_LINE_BYTES",
}


def own_codes() -> dict[str, str]:
    """Returns the code of each setting of this process. Servers with another SECRET_KEY have other codes for
    everything."""
    values = {name: getattr(settings, name) for name in _names()}
    values |= {name: getattr(settings, django) for name, django in _RENAMED.items()}
    values |= _of_store()
    values[SECRET_KEY], values[KEYRING] = "", _key_names()
    return {name: _code(name, value) for name, value in sorted(values.items())}


def unequal(own: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Returns the settings that differ, as far as both versions of TrainHub compare them."""
    if own.get(SECRET_KEY) != theirs.get(SECRET_KEY):
        return [SECRET_KEY]
    return sorted(name for name in own.keys() & theirs.keys() if own[name] != theirs[name])


def _names() -> list[str]:
    return [*_NAMES, *(name for name in dir(settings) if name.startswith(_PREFIXES))]


def _of_store() -> dict[str, object]:
    store = settings.BLOB_STORE
    if store is None:
        return {"BLOB_STORE": "disk"}
    return {
        "BLOB_STORE": store.place,
        "BLOB_STORE_ENDPOINT": store.endpoint,
        "BLOB_STORE_PRESIGN": (store.is_presigned, store.public_endpoint),
        "BLOB_STORE_KEEP_DELETED_DAYS": store.deleted_days,
    }


def _key_names() -> list[str]:
    """Returns the ids of the keys, the first first; nothing if there are none, or the file cannot be read."""
    try:
        return [key.name for key in keyring.load().keys]
    except SecretsUnavailable:
        return []


def _code(name: str, value: object) -> str:
    text = f"shared:{name}:{value!r}"
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), sha256).hexdigest()[:CODE_LENGTH]
