"""The parts of an audit that mechanisms bring along: their `PlanAudit`, and what these are made of."""
