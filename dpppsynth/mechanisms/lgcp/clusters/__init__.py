"""Clusters: pair sums beside noised masses, a posterior of clusters, and patterns that huddle like the original."""
