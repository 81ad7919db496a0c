"""Point patterns on linear networks: the home of network geometry, the resistance metric and network statistics.

This version of the package works on planar windows; it holds no network mechanism yet.
"""
