"""The hub: settings, front door, and what `make up` starts."""

__version__ = "0.1.0"
