"""Local differential privacy: clients randomise their own values, aggregators count the reports."""
