"""Empty: each module below says by itself what to use instead."""
