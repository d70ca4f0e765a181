"""Checkpoints that the agent delivers, and a resume from one, beside `rclone copy` of the same files."""
