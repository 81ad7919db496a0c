"""Bounds of log-Gaussian Cox mechanisms: field statistics, posterior draws, bounded slope, Kim & Lim's theorems."""
