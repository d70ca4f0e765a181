"""Environments from a project: its `pyproject.toml`, with its `uv.lock` if it has one, or a `pylock.toml`."""
