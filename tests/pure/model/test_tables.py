"""Functions that tables of bytes are made of: right to many digits, however small the number."""

import numpy as np

from ansor_deploy.model.dequantised.tables import _tanh


def test_tanh_of_small_numbers_is_not_nothing():
    sizes = np.concatenate([np.logspace(-40, 2, 500), [2e-3, np.nextafter(2e-3, 0)]])
    x = np.concatenate([-sizes, [0], sizes])
    np.testing.assert_allclose(_tanh(x), np.tanh(x), rtol=1e-12)
    with np.errstate(all="ignore"):
        ends = _tanh(np.array([np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(ends, [1, -1, np.nan])
