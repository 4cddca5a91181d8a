"""The only package that knows PostgreSQL."""
