"""Faults of elementwise kernels; the general ones are made by the judge."""

import torch


def absolute_value_of_y(x, y):
    """The sign of one operand is lost."""
    return x + y.abs()


def programs_beyond_65535(x, y):
    """The grid is cut at 65535 programs of 8 elements, as in a launch over the wrong axis: the rest is not written."""
    z = torch.zeros_like(x)
    z[: 65535 * 8] = (x + y)[: 65535 * 8]
    return z
