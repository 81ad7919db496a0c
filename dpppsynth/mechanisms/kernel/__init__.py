"""Poisson patterns around the points, by Gaussian kernels in windows and heat kernels on networks."""
