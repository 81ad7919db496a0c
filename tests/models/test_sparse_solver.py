"""Factors of sparse matrices against dense linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth.core.errors import QualityError
from dpppsynth.models.sparse_solver import SparseFactor


def scattered(size, seed, density=0.05):
    """A sparse positive definite matrix without any structure."""
    root = sp.random_array((size, size), density=density, rng=np.random.default_rng(seed))
    return (root @ root.T + sp.eye_array(size)).tocsc()


def grid(side):
    """Precision of a field on a grid, whose factor fills in."""
    step = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(side - 1, side))
    eye = sp.eye_array(side)
    slopes = sp.vstack([sp.kron(step, eye), sp.kron(eye, step)])
    return (slopes.T @ slopes + 0.1 * sp.eye_array(side**2)).tocsc()


MATRICES = {
    "scattered": scattered(60, 1),
    "grid": grid(13),
    "dense": scattered(20, 2, 1.0),
    "one": sp.csc_array([[4.0]]),
}


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
def test_factors_agree_with_dense_algebra(matrix):
    factor, dense = SparseFactor(matrix), matrix.toarray()
    right = np.random.default_rng(3).standard_normal((len(dense), 2))
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(dense, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(factor.solve(right[:, 0]), np.linalg.solve(dense, right[:, 0]), rtol=1e-9, atol=1e-12)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-9)
    np.testing.assert_allclose(factor.inverse_diagonal, np.diag(np.linalg.inv(dense)), rtol=1e-9)
    np.testing.assert_allclose((factor.root @ factor.root.T).toarray(), dense, atol=1e-10)


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
def test_indefinite_and_singular_matrices_are_refused(matrix):
    with pytest.raises(QualityError, match="not positive definite"):
        SparseFactor(sp.csc_array(matrix))


def test_many_right_hand_sides_are_solved_alike_on_any_number_of_cores(monkeypatch):
    rng = np.random.default_rng(3)
    root = sp.random_array((60, 60), density=0.05, rng=rng)
    matrix = (root @ root.T + sp.eye_array(60)).tocsc()
    factor, right = SparseFactor(matrix), rng.standard_normal((60, 27))
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        found.append(factor.solve(right))
    np.testing.assert_allclose(matrix @ found[0], right, atol=1e-12)
    assert all(np.array_equal(found[0], other) for other in found)
    assert factor.solve(right[:, :0]).shape == (60, 0)
