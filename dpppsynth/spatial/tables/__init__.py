"""Tables of geometries and attributes: files and GeoDataFrames before they are patterns or networks."""
