"""Packages that come from a git repository: their addresses, and how the hub fetches the files of one commit
without running anything of them."""
