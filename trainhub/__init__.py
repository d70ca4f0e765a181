"""The hub as a whole: settings, web server, worker, and the processes that `make up` starts."""

__version__ = "0.1.0"
# The oldest command line and SDK that this hub supports; docs/sdk.md has the rule.
OLDEST_SDK_VERSION = "0.1"
