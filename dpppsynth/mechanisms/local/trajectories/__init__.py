"""Trajectories of persons, LDPTrace's reports about them, and the random walks fitted to these."""
