"""Largest grids of local mechanisms, each limited by the arrays that its use needs."""

# Cells of one grid for range queries: their corners fill 128 MiB.
CELLS = 2**22
# Cells along a side in the settings of synthesizers: beyond, an estimate would not fit into memory.
SETTINGS_SIDE = 1000
# Cells along a side of the grid that trajectories move on.
TRAJECTORIES_SIDE = 1024
# Cells along a side of area mechanisms, of the grid of values and of the box of reports: arrays of the latter are kept.
AREA_SIDE, AREA_BOX = 1024, 4096
# Cells along an axis of square waves, and cells that a window may reach to either side.
SQUARE_WAVE_SIDE = 4096
# Cells along a side of grids with distance shells: tables have side^4 entries.
SHELLS_SIDE = 64
# Cells of releases that audits save: estimates of more take long.
AUDITED_CELLS = 32**2
# Cells along a side of grids whose shares are estimated by a field: its mode takes up to some minutes.
FIELD_SIDE = 256
