"""Marked tents: points with types and times in one private statistic."""
