"""Capped sums over pairs of near points: a second-order statistic with noise."""
