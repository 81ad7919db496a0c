"""A person's device under local differential privacy: a public description in, a place in, a random report out.

It loads NumPy and the few modules of one law, neither meshes nor models, so that small machines can carry it::

    from dpppsynth.client import Client

    device = Client.read("mechanism.json", most_epsilon=2.0)    # published by the collector, checked here
    line = device.report((3210.0, 6100.0)).to_json()            # bits of the operating system; this line is sent

`dpppsynth.local` has the collector's side: `write_description` makes the file, `Report.from_json` reads the lines.
"""

from dpppsynth.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
