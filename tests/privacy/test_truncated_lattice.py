"""Real-valued planar Laplace noise rounded to a lattice: exact decisions, exact law."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpppsynth.core.errors import InputError
from dpppsynth.privacy.truncated import lattice_noise
from dpppsynth.privacy.truncated.lattice_noise import BITS, LatticeNoise
from dpppsynth.truncated import PlanarLaplace, move

# False alarms of a statistical test.
ALARM = 1e-7
# Far and near bounds, none, and steps of which coordinates are 2^49.8 apart from the origin.
LAWS = [(1.0, 5.0, 0.01), (1.0, math.inf, 1.0), (0.01, 20.0, 0.5), (1.0, 10.0, 1e-10), (1e-5, 1.0, 3.0)]
TOP = 2**BITS - 1


class Words(np.random.Generator):
    """A generator whose words are given: an array (3, 1) for each request of one row."""

    def __init__(self, *words):
        super().__init__(np.random.PCG64(1))
        self.words = list(words)

    def integers(self, *args, **kwargs):
        return np.array(self.words.pop(0), dtype=np.int64).reshape(kwargs["size"])


def true_cell(law, point, *words):
    """Lattice cells, to 200 digits, of the points given by three uniforms of 62 bits for each row of words."""
    with mpmath.workdps(200):
        digits = [enumerate(each, 1) for each in zip(*words, strict=True)]
        values = [sum(mpmath.mpf(word) / 2 ** (BITS * place) for place, word in each) for each in digits]
        values = [value + mpmath.mpf(2) ** (-BITS * len(words) - 1) for value in values]
        length = -mpmath.log(values[0] * values[1]) / law.epsilon
        if law.near:
            length = law.bound * mpmath.sqrt(values[0])
        angle = 2 * mpmath.pi * values[2]
        offsets = (length * mpmath.cos(angle), length * mpmath.sin(angle))
        return [int(mpmath.floor((mpmath.mpf(x) + v) / law.step + 0.5)) for x, v in zip(point, offsets, strict=True)]


def chi_square(counts, probabilities):
    expected = counts.sum() * np.asarray(probabilities) / np.sum(probabilities)
    return stats.chisquare(counts, expected).pvalue


# --- Decisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "bound", "step"), LAWS)
def test_intervals_agree_with_floating_point(epsilon, bound, step, monkeypatch):
    points = np.random.default_rng(4).uniform(-1e5, 1e5, (40, 2))
    fast = move(points, epsilon=epsilon, bound=bound, step=step, rng=9)
    monkeypatch.setattr(lattice_noise, "SLACK", 1.0)
    words = np.random.default_rng(9).integers(0, 2**BITS, size=(3, 40))
    assert LatticeNoise(epsilon, bound, step).cells(points, words)[2].all()
    assert (move(points, epsilon=epsilon, bound=bound, step=step, rng=9) == fast).all()


@pytest.mark.parametrize(("epsilon", "bound", "step"), LAWS)
def test_lengths_are_within_their_stated_errors(epsilon, bound, step):
    law = LatticeNoise(epsilon, bound, step)
    words = lattice_noise._words(np.random.default_rng(2), 30)
    words[:2, :4] = [[2**20, TOP, TOP - 3, 2**21 + 1], [TOP, 2**20, TOP, TOP - 1]]
    lengths, errors, _ = law.lengths(words)
    for k, (first, second, _) in enumerate(words.T.tolist()):
        with mpmath.workdps(40):
            for end in (0, 1):
                u, v = (mpmath.mpf(word + end) / 2**BITS for word in (first, second))
                true = law.bound * mpmath.sqrt(u) if law.near else -mpmath.log(u * v) / law.epsilon
                assert abs(lengths[k] - true / law.step) <= errors[k]


SMALL_ROWS = [
    ((0, TOP // 3, 5), (2**50 + 77, 1, 2)),
    ((1, 1, TOP // 5), (3, 4, 5)),
    ((TOP, TOP, TOP // 7), (TOP, 5, TOP)),
    ((TOP // 2, 0, TOP), (9, 2**40, 3)),
]


@pytest.mark.parametrize("words", SMALL_ROWS)
@pytest.mark.parametrize("step", [0.25, 1e-6])
def test_extreme_words(words, step):
    """Words whose missing bits matter ask for more of them, and those are the next bits of the same uniforms."""
    law = LatticeNoise(2.0, math.inf, step)
    point = np.array([3.1, -4.2])
    assert move([point], epsilon=2.0, bound=math.inf, step=step, rng=Words(*words)).tolist() == [
        true_cell(law, point, *words)
    ]


@pytest.mark.parametrize(("turn", "above"), [(0, 1), (TOP, 0)])
def test_more_bits_where_a_point_lies_on_a_border(turn, above):
    """A direction along a border of cells: 62 bits cannot tell the side, and no arithmetic on them may try."""
    first, more = (TOP // 2, TOP // 3, turn), (1, 1, TOP // 2)
    rng = Words(first, more)
    assert move([[0.0, 0.5]], epsilon=1.0, bound=9.0, step=1.0, rng=rng)[0, 1] == above
    assert rng.words == []


@pytest.mark.parametrize("bound", [1.75, 1.0])
@pytest.mark.parametrize("last", [0, TOP])
def test_more_bits_where_words_leave_open_whether_an_offset_is_taken(bound, last):
    """The second uniform's word is the one that holds the limit; only its next bits say which side it is on."""
    near = LatticeNoise(1.0, bound, 0.125).near
    first = 2**61 + 12345
    with mpmath.workdps(60):
        u = (mpmath.mpf(first) + 0.5) / 2**BITS
        limit = mpmath.exp(-bound * mpmath.sqrt(u)) if near else mpmath.exp(-bound) / u
        second = int(limit * 2**BITS)
    again = (2**61, 2**50 if near else TOP - 2**40, 2**60)
    rng = Words((first, second, 5), (2**61, last, 5), again)
    move([[0.1, 0.0]], epsilon=1.0, bound=bound, step=0.125, rng=rng)
    # Small second uniforms make long Gamma variables and accept points of the disk.
    assert len(rng.words) == int((last == 0) == near)


def test_halves_round_up():
    """Without noise to speak of: half steps go up for either sign."""
    law = LatticeNoise(1.0, 1e-12, 1.0)
    words = (TOP // 2, TOP // 2, TOP // 8)
    assert true_cell(law, (0.5, -0.5), words) == [1, 0]
    assert move([[0.5, -0.5]], epsilon=1.0, bound=1e-12, step=1.0, rng=Words(words)).tolist() == [[1, 0]]


# --- The law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "bound", "step"), LAWS)
def test_moves_never_exceed_the_bound(epsilon, bound, step):
    points = np.random.default_rng(3).uniform(-1000, 1000, (4000, 2))
    moved = move(points, epsilon=epsilon, bound=bound, step=step, rng=1)
    assert moved.dtype == np.int64
    assert np.hypot(*(moved * step - points).T).max() <= (bound + step / math.sqrt(2)) * (1 + 1e-9)


def offsets(epsilon, bound, n=60_000, rng=6):
    """Noise on a lattice much finer than the classes it is counted in."""
    return move(np.zeros((n, 2)), epsilon=epsilon, bound=bound, step=1e-7, rng=rng) * 1e-7


def radii_and_angles(moved, law):
    """p-values of the lengths' and of the directions' classes."""
    classes = np.histogram(law.radial_cdf(np.hypot(*moved.T)), 24, (0, 1))[0]
    angles = np.histogram(np.arctan2(*moved.T), 24, (-np.pi, np.pi))[0]
    return chi_square(classes, np.ones(24)), chi_square(angles, np.ones(24))


@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, 3.0), (1.0, math.inf), (1.0, 1.3), (0.01, 2.0)])
def test_lengths_and_directions(epsilon, bound):
    assert min(radii_and_angles(offsets(epsilon, bound), PlanarLaplace(epsilon, bound))) > ALARM


def test_clamped_lengths_are_found():
    moved = offsets(1.0, math.inf)
    clamped = moved * np.minimum(1, 3.0 / np.hypot(*moved.T))[:, None]
    radii, _ = radii_and_angles(clamped, PlanarLaplace(1.0, 3.0))
    assert radii < ALARM


class Biased(np.random.Generator):
    """A generator that halves a twentieth of the words that directions are made of."""

    def integers(self, *args, size, **options):
        drawn = super().integers(*args, size=size, **options)
        drawn[2, : size[1] // 20] //= 2
        return drawn


def test_biased_directions_are_found():
    _, angles = radii_and_angles(offsets(1.0, 3.0, rng=Biased(np.random.PCG64(6))), PlanarLaplace(1.0, 3.0))
    assert angles < ALARM


@pytest.mark.parametrize("bound", [2.6, 1.2])
def test_coarse_lattices_hold_the_integrals_of_the_density(bound):
    law, point, n, fine = PlanarLaplace(1.0, bound), np.array([0.3, -0.1]), 100_000, 120
    moved = move(np.tile(point, (n, 1)), epsilon=1.0, bound=bound, step=1.0, rng=12)
    counts = np.histogram2d(*moved.T, bins=[np.arange(-3.5, 4)] * 2)[0].ravel()
    middles = (np.arange(7 * fine) + 0.5) / fine - 3.5
    density = law.pdf(np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2) - point)
    cells = density.reshape(7, fine, 7, fine).sum(axis=(1, 3)).ravel() / fine**2
    assert cells.sum() == pytest.approx(1, abs=1e-3)
    assert counts.sum() == n
    rare = cells < 1e-4
    assert counts[cells == 0].sum() == 0
    pooled = [np.append(each[~rare], each[rare].sum()) for each in (counts, cells)]
    keep = pooled[1] > 0
    assert chi_square(pooled[0][keep], pooled[1][keep]) > ALARM


def test_noise_does_not_depend_on_the_points():
    """Shifting points by whole steps shifts the result by as many: nothing else of a point takes part."""
    points = np.random.default_rng(0).integers(0, 64, (500, 2)) / 16
    arguments = {"epsilon": 0.7, "bound": 4.0, "step": 0.25, "rng": 3}
    assert (
        move(points + np.array([2.0**30, -(2.0**40)]), **arguments) - move(points, **arguments) == [2**32, -(2**42)]
    ).all()


def test_seeds_batches_and_no_points(monkeypatch):
    points = np.full((50, 2), 7.0)
    arguments = {"epsilon": 1.0, "bound": 10.0, "step": 1e-3}
    assert (move(points, **arguments, rng=1) == move(points, **arguments, rng=1)).all()
    assert (move(points, **arguments) != move(points, **arguments)).any()
    assert move(np.empty((0, 2)), **arguments).shape == (0, 2)
    monkeypatch.setattr(lattice_noise, "BATCH", 7)
    moved = move(points, **arguments, rng=1)
    assert len(np.unique(moved, axis=0)) == 50
    assert np.hypot(*(moved * 1e-3 - points).T).max() < 10.001


# --- Bad input -------------------------------------------------------------------------------------------------------

GOOD = {"points": [[1.0, 2.0]], "epsilon": 1.0, "bound": 5.0, "step": 0.1, "rng": 1}


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, True, None, "x", 10**400, 1e-70, 1e70, np.ones(2)])
@pytest.mark.parametrize("name", ["epsilon", "bound", "step"])
def test_wrong_numbers_are_refused(name, wrong):
    with pytest.raises(InputError, match=f"^{name}: "):
        move(**GOOD | {name: wrong})


@pytest.mark.parametrize(
    "wrong", [None, "x", [1.0, 2.0], [[1, 2], [3]], [[np.inf, 0]], [[True, False]], np.zeros((1, 3))]
)
def test_wrong_points_are_refused(wrong):
    with pytest.raises(InputError, match=r"^points: "):
        move(**GOOD | {"points": wrong})


def test_far_points_and_fine_steps_are_refused():
    far = 0.1 * 2.0**50 * 1.01
    with pytest.raises(InputError, match="coarser step or a nearer origin") as error:
        move(**GOOD | {"points": [[far, 0.0]]})
    assert str(far)[:6] not in str(error.value)
    with pytest.raises(InputError, match=r"^step: must be at least 2\^-45"):
        move(**GOOD | {"step": 1e-15})
    with pytest.raises(InputError, match=r"^rng: "):
        move(**GOOD | {"rng": "x"})
