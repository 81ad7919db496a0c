"""Public layers: what is publicly known at every place, such as population, deprivation or the distance to a pump.

A layer gives values at places, and tells of which share of a domain it knows nothing. Offsets and covariates are made
of layers: polygons with a value each, rasters, and functions of coordinates.
"""

from dpppsynth.spatial.layers.functions import FunctionLayer
from dpppsynth.spatial.layers.geotiff import read_geotiff
from dpppsynth.spatial.layers.polygons import PolygonLayer
from dpppsynth.spatial.layers.public_layer import PublicLayer
from dpppsynth.spatial.layers.rasters import RasterLayer

__all__ = ["FunctionLayer", "PolygonLayer", "PublicLayer", "RasterLayer", "read_geotiff"]
