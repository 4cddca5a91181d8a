"""Mainspring, @job, handles: what people import."""
