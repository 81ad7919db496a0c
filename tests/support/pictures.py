"""Pictures as matplotlib is asked to write them."""

from contextlib import contextmanager

import pytest
from matplotlib.figure import Figure


@contextmanager
def pictures_drawn():
    """The first axes of all figures that are written meanwhile."""
    drawn, write = [], Figure.savefig

    def writing(figure, stream, **options):
        drawn.append(figure.axes[0])
        write(figure, stream, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", writing)
        yield drawn
