"""The pages on which people make environments of their own, and look at their versions."""
