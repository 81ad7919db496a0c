"""Mechanisms, one folder for each family: its bound, statistic, synthesizer, release, audit and record."""
