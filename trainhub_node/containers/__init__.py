"""Container engines: how podman and docker are called, and how the ranks of an attempt enter a container. The
engine only mounts the image and the run's folders; everything else is as for runs without a container."""
