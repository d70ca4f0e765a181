"""The kinds of environments: what a source of each kind may contain, how a version of it is locked, and what
a node gets of it."""
