"""Laws of noise with a bound, and the delta that the bound costs."""
