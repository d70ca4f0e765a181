"""Makes the pictures of the documents, in docs/images/, from a demo that runs."""
