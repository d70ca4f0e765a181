"""Other versions of the node program: the hub orders one, the agent installs it beside its own, and the next
start tries it. What the installed package (the launcher) and all later programs exchange never changes: the
file record.json, the variable of `launcher`, and `python -m trainhub_node run --dir FOLDER`."""
