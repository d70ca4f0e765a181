"""The routes by which a node gets another version of the node program."""
