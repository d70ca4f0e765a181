"""All settings of the hub, each read from an environment variable (docs/configuration.md lists them)."""

from __future__ import annotations

from typing import Any

import dj_database_url

from trainhub import __version__, env, files, installation, mail
from trainhub.logs import log_configuration, shipping_settings
from trainhub.own_ports import own_ports
from trainhub.serving.database_pool import pool_options
from trainhub.serving.link_address import server_address
from trainhub.storage import blob_store
from trainhub.web import cookies, sign_in
from trainhub.worker.celery_settings import *  # noqa: F403
from trainhub.worker.periodic_tasks import beat_schedule

BASE_DIR, DATA_DIR = installation.BASE_DIR, installation.DATA_DIR
BLOB_STORE = blob_store.store_configuration()
DEBUG = env.boolean("DEBUG", False)
TRAINHUB_VERSION = __version__
SERVER_NAME, SERVER_ADDRESS = installation.SERVER_NAME, server_address()
LOG_LEVEL = installation.LOG_LEVEL
SILENCED_SYSTEM_CHECKS = [f"security.W{n:03}" for n in (4, 8, 12, 16, 18)]  # trainhub.deployment has its own

PUBLIC_URL, API_URL = installation.stored_public_url(), installation.stored_api_url()
BEHIND_TLS = PUBLIC_URL.startswith("https://")
SECRET_KEY = installation.secret_key()
ALLOWED_HOSTS = installation.allowed_hosts()
CSRF_TRUSTED_ORIGINS = [*env.split_words("CSRF_TRUSTED_ORIGINS"), *([PUBLIC_URL] if BEHIND_TLS else [])]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
SESSION_COOKIE_NAME = cookies.name("sessionid", PUBLIC_URL)
CSRF_COOKIE_NAME = cookies.name("csrftoken", PUBLIC_URL)
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = env.integer("SESSION_DAYS", 14, least=1, most=env.MOST_DAYS) * 86400
SECURE_REFERRER_POLICY = "same-origin"
HSTS_SECONDS = env.integer("HSTS_SECONDS", 365 * 86400, least=0)

NODE_UNREACHABLE_AFTER = env.number("NODE_UNREACHABLE_AFTER", 10, least=1)
NODE_LOST_AFTER = env.number("NODE_LOST_AFTER", 60, least=1)
NEVER_STARTED_AFTER = env.number("NEVER_STARTED_AFTER", 120, least=1)
NEVER_READY_AFTER = env.number("NEVER_READY_AFTER", 1800, least=1)
PREEMPT_AFTER_MINUTES = env.number("PREEMPT_AFTER_MINUTES", 10)
FAIR_SHARE_HALF_LIFE_DAYS = env.number("FAIR_SHARE_HALF_LIFE_DAYS", 7, least=0.01, most=env.MOST_DAYS)
NODE_PROVIDERS = env.text("NODE_PROVIDERS", "")
PROVIDER_TIMEOUT = env.number("PROVIDER_TIMEOUT", 120, least=1)
PROVIDER_JOIN_TIMEOUT = env.number("PROVIDER_JOIN_TIMEOUT", 900, least=1)
PROVIDER_TRIES = env.integer("PROVIDER_TRIES", 3, least=1)
PROVIDER_PAUSE = env.number("PROVIDER_PAUSE", 5, least=0.1)
PROVIDER_CALLS = env.integer("PROVIDER_CALLS", 4, least=1)
PROVIDER_ENV = env.split_words("PROVIDER_ENV")

MAX_SNAPSHOT_BYTES = env.integer("MAX_SNAPSHOT_BYTES", 512 * 2**20, least=1)
MAX_SNAPSHOT_FILES = env.integer("MAX_SNAPSHOT_FILES", 20_000, least=1)
ENVIRONMENT_BUILD_TIMEOUT = env.number("ENVIRONMENT_BUILD_TIMEOUT", 7200, least=10)
MAX_ENVIRONMENT_BUILD_BYTES = env.integer("MAX_ENVIRONMENT_BUILD_BYTES", 32 * 2**30, least=1)
MAX_UPLOAD_BYTES = env.integer("MAX_UPLOAD_BYTES", 200 * 2**30, least=1)
MAX_REPORT_BYTES = env.integer("MAX_REPORT_BYTES", 32 * 2**20, least=2**20)
MAX_LOG_BYTES = env.integer("MAX_LOG_BYTES", 20 * 2**30, least=2**20)

MODEL_SCAN_SECONDS = env.integer("MODEL_SCAN_SECONDS", 60, least=1)
MODEL_SCAN_MEMORY_BYTES = env.integer("MODEL_SCAN_MEMORY_BYTES", 2 * 2**30, least=2**28)
PURGE_DAYS = env.number("PURGE_DAYS", 30, least=0, most=env.MOST_DAYS)
LOG_ARCHIVE_AFTER_HOURS = env.number("LOG_ARCHIVE_AFTER_HOURS", 24, most=env.MOST_DAYS * 24)
FETCH_ENVIRONMENT_FILES = env.choice("FETCH_ENVIRONMENT_FILES", "IMAGES", ("NONE", "IMAGES", "ALL"))
ENVIRONMENT_FILE_DAYS = env.number("ENVIRONMENT_FILE_DAYS", 0, least=0, most=env.MOST_DAYS)
METRIC_KEYS_PER_RUN = env.integer("METRIC_KEYS_PER_RUN", 10_000, least=1)
METRIC_POINTS_PER_RUN = env.integer("METRIC_POINTS_PER_RUN", 100_000_000, least=1000)

TELEMETRY_KEEP_10S = env.number("TELEMETRY_KEEP_10S", 2, least=1, most=env.MOST_DAYS)
TELEMETRY_KEEP_60S = env.number("TELEMETRY_KEEP_60S", 30, least=1, most=env.MOST_DAYS)
TELEMETRY_KEEP_600S = env.number("TELEMETRY_KEEP_600S", 400, least=1, most=env.MOST_DAYS)

ALERT_IDLE_MINUTES = env.number("ALERT_IDLE_MINUTES", 15)
ALERT_IDLE_PERCENT = env.number("ALERT_IDLE_PERCENT", 5)
ALERT_HANG_MINUTES = env.number("ALERT_HANG_MINUTES", 5)
ALERT_HANG_POWER_PERCENT = env.number("ALERT_HANG_POWER_PERCENT", 25)
ALERT_THROTTLE_SECONDS = env.number("ALERT_THROTTLE_SECONDS", 60)
ALERT_GPU_CELSIUS = env.number("ALERT_GPU_CELSIUS", 90)
ALERT_GPU_MEMORY_CELSIUS = env.number("ALERT_GPU_MEMORY_CELSIUS", 100)
ALERT_GPU_MEMORY_PERCENT = env.number("ALERT_GPU_MEMORY_PERCENT", 97)
ALERT_ECC = env.boolean("ALERT_ECC", True)
ALERT_XID_QUIET_MINUTES = env.number("ALERT_XID_QUIET_MINUTES", 60)
ALERT_REMAPPED_ROWS = env.boolean("ALERT_REMAPPED_ROWS", True)
ALERT_RETIRED_PAGES = env.boolean("ALERT_RETIRED_PAGES", True)
ALERT_PCIE_MINUTES = env.number("ALERT_PCIE_MINUTES", 5)
ALERT_GPU_LOST = env.boolean("ALERT_GPU_LOST", True)
ALERT_STRAY_MINUTES = env.number("ALERT_STRAY_MINUTES", 5)
ALERT_NVML_SECONDS = env.number("ALERT_NVML_SECONDS", 30)
ALERT_SILENT_SECONDS = env.number("ALERT_SILENT_SECONDS", 30)
ALERT_DISK_FREE_BYTES = env.integer("ALERT_DISK_FREE_BYTES", 5 * 2**30)
ALERT_HOST_MEMORY_PERCENT = env.number("ALERT_HOST_MEMORY_PERCENT", 95)
ALERT_PORT_SECONDS = env.number("ALERT_PORT_SECONDS", 30)
ALERT_CLOCK_SECONDS = env.number("ALERT_CLOCK_SECONDS", 5)
ALERT_UNBALANCED_MINUTES = env.number("ALERT_UNBALANCED_MINUTES", 10)
ALERT_RUN_SILENT_MINUTES = env.number("ALERT_RUN_SILENT_MINUTES", 30)
ALERT_LASTING_SECONDS = env.number("ALERT_LASTING_SECONDS", 60)
ALERT_HOLD_SECONDS = env.number("ALERT_HOLD_SECONDS", 60)
ALERT_KEEP_DAYS = env.integer("ALERT_KEEP_DAYS", 90, least=1, most=env.MOST_DAYS)

AUDIT_KEEP_DAYS = env.integer("AUDIT_KEEP_DAYS", 730, most=env.MOST_DAYS)
SECRETS_KEYRING = files.secrets_keyring(DATA_DIR)
AUDIT_HEADS = env.text("AUDIT_HEADS", str(DATA_DIR / "audit-heads.log"))

WEBHOOK_PROXY = env.secret("WEBHOOK_PROXY")
WEBHOOK_HOSTS = env.split_words("WEBHOOK_HOSTS")
PACKAGE_INDEX_HOSTS = env.split_words("PACKAGE_INDEX_HOSTS")
GIT_KNOWN_HOSTS = env.text("GIT_KNOWN_HOSTS", "/etc/ssh/ssh_known_hosts")
IMAGE_REGISTRY_HOSTS = env.split_words("IMAGE_REGISTRY_HOSTS")
IMAGE_REGISTRY = env.image_registry("IMAGE_REGISTRY")
CONDA_CHANNEL_ALIAS = env.text("CONDA_CHANNEL_ALIAS", "https://conda.anaconda.org")
CONDA_CHANNEL_FOLDERS = env.split_words("CONDA_CHANNEL_FOLDERS")
OWN_PORTS = own_ports()
IS_ON_LOOPBACK_ONLY = installation.is_on_loopback_only()
EMAIL_URL = env.secret("EMAIL_URL")
_mail = mail.server(EMAIL_URL)
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS, EMAIL_TIMEOUT = _mail.is_ssl, _mail.is_starttls, 5
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "trainhub@localhost")

INSTALLED_APPS = [
    "trainhub",
    "workspaces",
    "live",
    "clusters",
    "environments",
    "datastores",
    "jobs",
    "tracking",
    "registry",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "django_htmx",
    "bootstrap",
    "heroicons",
]
MIDDLEWARE = [
    # First, so that it also sees what the other middleware refuses.
    "workspaces.api.middleware.ApiProblems",
    "trainhub.web.request_times.NotedRoute",
    "trainhub.web.compression.CompressedText",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "workspaces.authentication.sessions.NoteSessions",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "trainhub.urls"
ASGI_APPLICATION = "trainhub.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["heroicons.templatetags.heroicons", "django.templatetags.static"],
        },
    }
]

_SQLITE = {
    "timeout": 20,
    # Takes SQLite's write lock when a transaction begins: one that reads first and then writes could not wait
    # for the lock, but would fail at once.
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=67108864;",
}
_database: dict[str, Any] = {
    **dj_database_url.parse(env.secret("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'trainhub.sqlite3'}")
}
if _database["ENGINE"] == "django.db.backends.sqlite3":
    _database["OPTIONS"] = {**_database.get("OPTIONS", {}), **_SQLITE}
    # Opening the file anew for each request, with its pragmas and functions, takes 2 ms of CPU. A connection
    # that is not in use holds no lock.
    _database["CONN_MAX_AGE"] = 60
elif _database["ENGINE"] == "django.db.backends.postgresql":
    _database["OPTIONS"] = {**_database.get("OPTIONS", {}), "pool": pool_options()}
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# OpenTelemetry reads these variables itself.
_collector = env.text("OTEL_EXPORTER_OTLP_ENDPOINT", "")
_trace_collector = env.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
env.url_of_kind("OTEL_EXPORTER_OTLP_ENDPOINT", _collector, ("http", "https"))
env.url_of_kind("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", _trace_collector, ("http", "https"))
SENDS_TRACES = bool(_collector or _trace_collector)

LOG_DESTINATION, LOG_LINE_BYTES = shipping_settings.hub_destination(), shipping_settings.line_bytes()
REDIS_URL = installation.redis_url()
BROKER_URL = installation.broker_url()
NODE_BROKER_URL = installation.node_broker_url()
BROKER_CA = installation.broker_ca()
RABBITMQ_API_URL = installation.rabbitmq_api_url()
HUB_CA = installation.hub_ca()
OWN_NODE_TOKEN_FILE = installation.NODE_TOKEN_FILE
NODE_WHEELS, SDK_WHEELS, NODE_PROGRAMS = installation.PACKAGE_FOLDERS
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}

CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Seconds of one wait at the queue, which a message ends at once; a worker that is told to end waits, too.
    "polling_interval": 1,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
CELERY_ENABLE_UTC = USE_TZ = True
CELERY_TIMEZONE = TIME_ZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(installation.OWN_DIR / "run" / "beat")
CELERY_BEAT_SCHEDULE = beat_schedule()

AUTH_USER_MODEL = "workspaces.User"
SIGN_IN = sign_in.external_sign_in()
INSTALLED_APPS += sign_in.oidc_apps(SIGN_IN)
MIDDLEWARE += sign_in.middleware(SIGN_IN)
SOCIALACCOUNT_PROVIDERS = sign_in.allauth_provider(SIGN_IN)
SOCIALACCOUNT_ADAPTER = "workspaces.authentication.external.oidc.SettingsAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
PASSWORD_HASHERS = [
    "workspaces.authentication.password_hashing.BoundedArgon2PasswordHasher",
    # Of installations made before argon2: such a password is stored anew when its person signs in.
    "workspaces.authentication.password_hashing.BoundedPBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = LOGOUT_REDIRECT_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "trainhub.static_files.VersionedStorage"},
}
FILE_UPLOAD_TEMP_DIR = str(DATA_DIR / "tmp") if (DATA_DIR / "tmp").is_dir() else None
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 2**20

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "workspaces.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "workspaces.api.json_body.BoundedJSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "EXCEPTION_HANDLER": "workspaces.api.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "TrainHub",
    "DESCRIPTION": "Configure, preview, launch and watch distributed training jobs.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",  # only from 3.1 on may a reference be null
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "LogTargetKindEnum": "jobs.log_shipping.destinations.KINDS",
        "RoleEnum": "workspaces.api.workspaces.ROLES",
        "ServiceRoleEnum": "workspaces.api.service_accounts.ROLES",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "trainhub.schema.add_bytes",
        "trainhub.schema.add_problems",
        "trainhub.schema.null_by_any_of",
    ],
}
LOGGING = log_configuration.logging_settings(LOG_LEVEL)
