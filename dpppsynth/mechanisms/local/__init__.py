"""Local differential privacy: clients apply_noise their own values, aggregators count the reports."""
