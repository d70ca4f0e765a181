"""What removal by retention rules costs those who work at the same time."""
