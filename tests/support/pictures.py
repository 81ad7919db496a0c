"""Pictures as matplotlib draws them, and is asked to write them."""

from contextlib import contextmanager

import numpy as np
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


def pixels(ax):
    figure = ax.figure
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def pixel_at(ax, x, y):
    image = pixels(ax)
    column, row = ax.transData.transform((x, y))
    return image[len(image) - 1 - int(row), int(column)]


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
