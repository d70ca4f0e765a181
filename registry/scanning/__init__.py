"""What a model's files would run when they are loaded. Files are read by a process of its own, and never
unpickled."""
