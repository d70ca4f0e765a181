"""Runs the hub under an account of its own, if `up` is started as root and RUN_AS is not root.

Two processes stay root's: the small one that watches, and this machine's agent. Their files lie in folders of
root's: DATA_DIR itself with `node`, `run` and `logs`. Everything of the hub lies in DATA_DIR/hub and belongs
to the hub's account."""
