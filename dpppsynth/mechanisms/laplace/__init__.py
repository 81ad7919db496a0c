"""Noised counts of cells or tent masses, made non-negative."""
