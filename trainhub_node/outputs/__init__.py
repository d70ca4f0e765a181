"""What a run leaves in outputs/ and logs/: to the hub, or into a datastore that its spec names."""
