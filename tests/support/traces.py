"""Search for original coordinates and numbers of points in files and objects."""

import re

import numpy as np

from dpppsynth.linear_network import LinearNetwork


def near(written, values, room=0.00051):
    """Whether each value stands among the written numbers, to three decimals."""
    padded = np.concatenate([[-np.inf], written, [np.inf]])
    place = np.searchsorted(padded, values)
    return np.minimum(values - padded[place - 1], padded[place] - values) < room


def holds(content, arrays):
    """Whether any eight bytes of the arrays stand in the content, at whatever offset."""
    needles = np.concatenate([np.frombuffer(a.tobytes(), np.uint64) for a in arrays])
    return any(
        np.isin(np.frombuffer(content, np.uint64, (len(content) - start) // 8, start), needles).any()
        for start in range(min(8, len(content)))
    )


def traces(folder, pattern, *, n):
    """Original coordinates, and the number of points where `n` is asked for, in names and contents of files."""
    found = set()
    pairs = [pattern.xy, pattern.xy.T[:, : len(pattern) // 2 * 2]]  # in single precision, two neighbours in a row
    packed = [pattern.xy.astype(d) for d in ("<f8", ">f8")] + [p.astype(d) for p in pairs for d in ("<f4", ">f4")]
    counts = [np.array([len(pattern)], d) for d in ("<i8", ">i8", "<f8", ">f8")]
    for path in folder.rglob("*"):
        content = path.read_bytes()
        text = content.decode("latin-1")
        if path.suffix in {".json", ".geojson"}:
            written = np.unique([float(number) for number in re.findall(r"\d+\.\d{3,}", text)])
            # On a line points meet by chance to three decimals, not to six.
            room = 5.1e-7 if isinstance(pattern.domain, LinearNetwork) else 0.00051
            found |= {"coordinates as text"} if near(written, pattern.xy, room).all(axis=1).any() else set()
            number = rf"(?<![\d.]){len(pattern)}(?:\.0)?(?![\d.])"
            found |= {"the number of points"} if n and re.search(number, f"{path.stem} {text}") else set()
        else:
            found |= {"coordinates in binary"} if holds(content, packed) else set()
            found |= {"the number of points in binary"} if n and holds(content, counts) else set()
    return found
