"""Git repositories, from which packages and the code of runs come: their addresses, and how the hub fetches
the files of one commit without running anything of them."""
