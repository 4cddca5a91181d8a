"""Measures Mainspring on this machine: real processes, a real and durable PostgreSQL."""
