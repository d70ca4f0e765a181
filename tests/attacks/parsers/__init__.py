"""Attacks on what reads foreign bytes: every parser has bounded memory and bounded time."""
