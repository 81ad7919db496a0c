"""Foundations that know nothing of points: errors, arguments, randomness, files, worker processes, map projections."""
