"""What keeps runs of one node apart: an account for each attempt, namespaces, and limits of resources.

The agent and the child of an attempt use it as root. Its modules import little, because every run waits for
them."""
