"""The page System, for operators: how the hub itself is doing."""
