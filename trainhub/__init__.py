"""The hub as a whole: settings, web server, worker, and the processes that `make up` starts."""

__version__ = "0.1.0"
