"""What makes the pages of docs/reference; one module per page."""
