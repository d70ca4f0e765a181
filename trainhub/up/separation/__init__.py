"""The hub under an account of its own, where `up` is started as root with RUN_AS.

Root keeps two processes: the small one that watches, and this machine's agent. What they read and write lies
in folders of root's: DATA_DIR itself with `node`, `run` and `logs`. Everything of the hub lies in
DATA_DIR/hub and belongs to the hub's account."""
