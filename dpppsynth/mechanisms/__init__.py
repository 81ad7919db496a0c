"""Mechanisms, one folder for each family: its bound, plan, synthesizer, release, audit and words."""
