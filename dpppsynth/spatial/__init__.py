"""Point patterns in windows and on networks: domains, marks, meshes, intensities, sampling and transport distances."""
