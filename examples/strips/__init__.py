"""Counts in vertical strips of a window."""
