"""Birth certificates: what is known of where a version comes from, signed with this installation's key."""
