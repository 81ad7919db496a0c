"""Points moved one by one by planar Laplace noise: geomasking with a proof."""
