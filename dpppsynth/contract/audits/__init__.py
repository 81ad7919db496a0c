"""Audit parts that mechanisms supply: `StatisticAudit` and its components."""
