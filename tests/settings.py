"""The hub's own settings on a data folder that ends with the test session; nothing is started by importing
this."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_data = Path(tempfile.mkdtemp(prefix="trainhub-test-"))
for _name in (
    "BIND",
    "PUBLIC_URL",
    "API_URL",
    "HSTS_SECONDS",
    "ALLOWED_HOSTS",
    "SECRET_KEY_FILE",
    "REDIS_URL_FILE",
    "BROKER_URL",
    "BROKER_URL_FILE",
    "RUN_AS",
    "HUB_AS",
    "TRUSTED_PROXIES",
    "OPEN",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "NODE_BROKER_URL",
    "RABBITMQ_API_URL",
    "EMAIL_URL",
    "SHIP_LOGS_TO",
    "SHIP_LOGS_LINE_BYTES",
    "WEBHOOK_PROXY",
    "WEBHOOK_HOSTS",
    "OIDC_ISSUER",
    "REMOTE_USER_HEADER",
    "SIGN_IN_GROUPS",
    "SIGN_IN_NEW_ACCOUNTS",
    "PASSWORD_SIGN_IN",
    "OPERATORS_NEED_SECOND_FACTOR",
):
    os.environ.pop(_name, None)
if os.geteuid() == 0:
    os.environ["RUN_AS"] = "root"
os.environ["DATA_DIR"] = str(_data)
os.environ["NODE_DIR"] = str(_data / "node")
os.environ["SECRETS_KEYRING"] = str(_data / "keyring" / "keys")
os.environ["SECRET_KEY"] = "of-tests-only"

# Only now: trainhub.installation reads DATA_DIR once, when it is imported.
from trainhub.up.valkey import runtime_folder  # noqa: E402

os.environ["REDIS_URL"] = f"unix://:of-tests-only@{runtime_folder(_data) / 'valkey.sock'}"
os.environ["DATABASE_URL"] = os.environ.get("TRAINHUB_TEST_DATABASE_URL", "")

from trainhub.settings import *  # noqa: E402, F403
from trainhub.settings import DATABASES  # noqa: E402

DATABASES["default"]["TEST"] = {"NAME": str(_data / "test.sqlite3")} if not os.environ["DATABASE_URL"] else {}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "trainhub.localhost"]
