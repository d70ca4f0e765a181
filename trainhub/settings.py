"""All settings of the hub, each read from an environment variable (docs/configuration.md lists them)."""

from __future__ import annotations

from pathlib import Path

import dj_database_url

from trainhub import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.folder("DATA_DIR", BASE_DIR / "data")
DEBUG = env.boolean("DEBUG", False)
SECRET_KEY = env.secret("SECRET_KEY", "insecure-until-up-makes-one")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "*")
REDIS_URL = env.secret("REDIS_URL", "redis://127.0.0.1:6379/0")
BROKER_URL = env.secret("BROKER_URL", REDIS_URL)
NODE_LOST_AFTER = env.number("NODE_LOST_AFTER", 60, least=1)
NODE_UNREACHABLE_AFTER = env.number("NODE_UNREACHABLE_AFTER", 10, least=1)

INSTALLED_APPS = [
    "workspaces",
    "live",
    "clusters",
    "jobs",
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
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
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
            "builtins": ["heroicons.templatetags.heroicons"],
        },
    }
]
DATABASES = {"default": dj_database_url.parse(env.secret("DATABASE_URL", f"sqlite:///{DATA_DIR / 'trainhub.sqlite3'}"))}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
CHANNEL_LAYERS = {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}}
AUTH_USER_MODEL = "workspaces.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
CELERY_BROKER_URL = BROKER_URL
