"""Bounds of Poisson patterns with a kernel at each point, in windows and on networks."""
