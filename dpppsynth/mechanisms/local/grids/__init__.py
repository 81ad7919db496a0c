"""Grids for range queries: cells of one or two levels, their numbers, cuts, answers and errors."""
