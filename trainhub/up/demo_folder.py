"""Points this process's environment to the demo's own data. Must run before anything reads where data
lies."""

from __future__ import annotations

import os

from trainhub import env, files

# What would lead the demo to an installation's own data, machines and people.
REAL = (
    "DATABASE_URL",
    "REDIS_URL",
    "BROKER_URL",
    "NODE_BROKER_URL",
    "RABBITMQ_API_URL",
    "SECRET_KEY",
    "SECRETS_KEYRING",
    "NODE_DIR",
    "RUN_AS",
    "OPEN",
    "PUBLIC_URL",
    "API_URL",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "NODE_PROVIDERS",
    "EMAIL_URL",
    "SHIP_LOGS_TO",
    "OIDC_ISSUER",
    "REMOTE_USER_HEADER",
    "PASSWORD_SIGN_IN",
    "OPERATORS_NEED_SECOND_FACTOR",
    "TRAINHUB_NODE_CACHE",
)


def turn_to() -> None:
    """Sets the environment so that all data lies in DEMO_DIR, and nothing of a real installation is used."""
    for name in REAL:
        os.environ.pop(name, None)
        os.environ.pop(f"{name}_FILE", None)
    # The demo's runs are its own, and its machines are simulated.
    os.environ["RUN_AS"] = "root" if os.geteuid() == 0 else ""
    os.environ["DATA_DIR"] = str(env.folder("DEMO_DIR", files.default_data_folder("-demo")))
    # The past of the demo is trained with small matrices. Several threads would mostly wait for each other:
    # on a busy machine they took twenty times as much CPU time as one.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
