"""The command line and the library for Python, served below /sdk/ to machines without a package index: the
page that pip reads, the wheels, and the lines that install them."""
