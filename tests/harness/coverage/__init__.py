"""Which lines of the product the tests reach."""
