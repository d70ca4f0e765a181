"""Where the silence of runs is known: a table that higher floors fill when they are ready.

Each entry is the dotted path of a function, because apps are ready before models can be imported. It takes
lease holders and the time (Unix seconds)."""

from __future__ import annotations

# Functions that return the RunSilence of those holders that are runs at work.
RANK_SILENCES: list[str] = []
# Functions that return the seconds since another sign of life.
OTHER_SIGNS: list[str] = []
