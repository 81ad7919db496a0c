"""The terms every mechanism fulfils: from a synthesizer to a plan, to a measurement, to a release."""
