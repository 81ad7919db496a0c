"""The contract of all mechanisms: from a synthesizer to a plan, a measurement and a release."""
