"""Reports of saved releases: one self-contained HTML page for lawyers, auditors and users of the patterns.

`write_report` reads the public folder alone. The page needs no network, runs no script and prints well; the same folder
gives the same bytes.
"""

from dpppsynth.reporting.page import REPORT, is_report, render_report, write_report

__all__ = ["REPORT", "is_report", "render_report", "write_report"]
