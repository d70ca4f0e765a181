"""The hub as a whole: settings, web server, worker, and the processes that `make up` starts."""

__version__ = "0.1.0"
# The oldest command line and SDK that this hub supports; docs/sdk.md has the rule.
OLDEST_SDK_VERSION = "0.1"
# The oldest hub that works with the tables of this version, so that an upgrade can be taken back to it
# (docs/upgrade.md).
OLDEST_HUB_VERSION = "0.1.0"
