"""Applications to learn from."""
