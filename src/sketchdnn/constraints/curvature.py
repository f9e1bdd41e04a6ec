"""The second derivatives of equations.

An equation combines two vectors v and w in one of three forms. For each form, the second derivatives by v and w are a
matrix of four rows; the chain rule gives those by the variables.
"""

from __future__ import annotations

import numpy as np

from .equations import TINY, System
from .variables import Floats


def curvature(system: System, z: Floats, weights: Floats, basis: Floats) -> Floats:
    """The second derivatives of the weighted sum of the equations, along the columns of a basis."""
    five = system.base + system.steps @ z
    v, w = five[:2], five[2:4]
    v_length, w_length = (np.maximum(np.hypot(*each), TINY) for each in (v, w))
    u, t = v / v_length, w / w_length
    n, o = np.array((-u[1], u[0])), np.array((-t[1], t[0]))  # across v and across w
    offset, sine, lengths = system.kind
    angle_sine, angle_cosine = (n * t).sum(axis=0), (u * t).sum(axis=0)
    nn, nu, un = _products(n, n), _products(n, u), _products(u, n)
    second = np.zeros((len(system), 4, 4))
    v_side = offset * w_length / v_length**2  # offsets: (v̂ × w)''
    second[:, :2, :2] = _scaled(-v_side * angle_sine, nn) + _scaled(v_side * angle_cosine, nu + un)
    cross = _scaled(-offset / v_length, un)
    second[:, 2:, :2], second[:, :2, 2:] = cross, cross.transpose(0, 2, 1)
    slope = np.concatenate([-n / v_length, o / w_length])  # sines: of the angle from v to w
    second -= _scaled(sine * angle_sine, _products(slope, slope))
    second[:, :2, :2] += _scaled(sine * angle_cosine / v_length**2, nu + un)
    second[:, 2:, 2:] -= _scaled(sine * angle_cosine / w_length**2, _products(o, t) + _products(t, o))
    second[:, :2, :2] += _scaled(lengths / v_length, nn)  # differences of lengths
    second[:, 2:, 2:] -= _scaled(lengths / w_length, _products(o, o))
    along = system.steps[:4] @ basis
    weighted = np.einsum("i,iab,bik->aik", weights, second, along)
    size = along.shape[2]
    return np.asarray(along.reshape(-1, size).T @ weighted.reshape(-1, size))


def _products(a: Floats, b: Floats) -> Floats:
    """The outer product of each column of a with that of b."""
    return np.asarray(a.T[:, :, None] * b.T[:, None, :])


def _scaled(by: Floats, matrices: Floats) -> Floats:
    return np.asarray(by[:, None, None] * matrices)
