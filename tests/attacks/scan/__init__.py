"""Files of models that run code, in every disguise, and harmless ones (finding S13)."""
