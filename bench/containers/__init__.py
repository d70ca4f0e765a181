"""A run in an image beside `podman run` by hand."""
