"""What runs log by step, on its page and in comparisons."""
