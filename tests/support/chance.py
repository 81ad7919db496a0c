"""A fast stand-in for NUTS, for tests that do not depend on its law."""

import numpy as np

from dpppsynth.models.nuts import CHAINS, Chains, Density


class Chance:
    """A sampler of standard normal chains, whatever the model; they pass every diagnostic if there are enough draws."""

    def __init__(self, model, *settings):
        self._size = model.size if isinstance(model, Density) else model["z"].type.shape[0]

    def sample(self, *, draws, tune, seed, data=None):
        return Chains(np.random.default_rng(seed).normal(size=(CHAINS, draws, self._size)), 0)


class Apart(Chance):
    """Chains that have not found each other."""

    def sample(self, **settings):
        chains = super().sample(**settings)
        return Chains(chains.z + np.arange(CHAINS)[:, None, None], 0)


class Words(np.random.Generator):
    """A generator whose whole numbers are given: as many as a request asks for are taken from the front."""

    def __init__(self, words):
        super().__init__(np.random.PCG64(1))
        self.words = [int(word) for word in np.ravel(words)]

    def integers(self, *_args, size, **_options):
        taken, self.words = self.words[: (count := int(np.prod(size)))], self.words[count:]
        return np.array(taken, dtype=np.int64).reshape(size)
