"""Names for runs and models whose clients give none."""

from __future__ import annotations

import secrets

_HOW = [
    "able", "bold", "brave", "bright", "brisk", "calm", "clear", "clever", "cool", "crisp", "deft", "eager", "fair", "fast",
    "fine", "firm", "fleet", "fond", "fresh", "gentle", "glad", "grand", "happy", "hardy", "keen", "kind", "lively", "loud",
    "lucid", "lucky", "mellow", "merry", "mild", "neat", "nimble", "noble", "plain", "polite", "proud", "quick", "quiet",
    "rapid", "ready", "silent", "sleek", "smart", "smooth", "snug", "solid", "spry", "steady", "sturdy", "sunny", "swift",
    "tidy", "trim", "upbeat", "vivid", "warm", "wise", "witty", "zesty",
]
_WHO = [
    "ant", "ape", "auk", "bat", "bear", "bee", "boar", "carp", "cat", "clam", "cod", "colt", "crab", "crane", "crow", "deer",
    "dove", "duck", "eel", "elk", "fawn", "finch", "fox", "frog", "gnu", "goose", "grouse", "gull", "hare", "hawk", "hen",
    "heron", "horse", "hound", "jay", "kit", "koi", "lamb", "lark", "lynx", "mare", "mink", "mole", "moose", "moth", "mouse",
    "newt", "otter", "owl", "ox", "panda", "perch", "quail", "ram", "raven", "ray", "robin", "rook", "seal", "shark", "shrew",
    "skunk", "sloth", "snail", "snipe", "squid", "stag", "stork", "swan", "tern", "toad", "trout", "vole", "wasp", "whale",
    "wolf", "wren", "yak", "zebra",
]


def given_name() -> str:
    return f"{secrets.choice(_HOW)}-{secrets.choice(_WHO)}-{secrets.randbelow(1000)}"
