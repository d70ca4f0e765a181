"""Container images as environments: references to registries, what the hub asks registries, and the layers
that it keeps for its nodes."""
