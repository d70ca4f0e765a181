"""Birth certificates: the known facts about the origin of a version, signed with this installation's key."""
