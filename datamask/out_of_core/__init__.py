"""Selecting from a corpus that does not fit into memory."""
