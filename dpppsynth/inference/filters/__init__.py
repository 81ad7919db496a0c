"""Filters and smoothers of released series with bounded noise."""
