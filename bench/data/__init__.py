"""Downloads of data beside other programs."""
