"""Interpolation of numbers on a raster: nearest, bilinear, bicubic."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np

from whereish.arrays import FloatArray

__all__ = ["Kernel", "interpolated"]

Kernel = Literal["nearest", "bilinear", "bicubic"]


def interpolated(
    values: FloatArray, columns: FloatArray, rows: FloatArray, kernel: Kernel
) -> FloatArray:
    """Numbers at positions counted in cells (centres at halves); constant beyond the border.

    "bicubic" is the convolution of Keys (a = -1/2, as GDAL's), kept within the range of the 16
    numbers that it is made of, so that no density turns negative.  NaN where a number that
    counts is missing.
    """
    if kernel == "nearest":
        row = np.clip(np.floor(rows), 0, values.shape[0] - 1).astype(np.intp)
        column = np.clip(np.floor(columns), 0, values.shape[1] - 1).astype(np.intp)
        return np.asarray(values[row, column])
    reach, shape = (1, _hat) if kernel == "bilinear" else (2, _keys)
    total = np.zeros(columns.shape)
    low, high = np.full(columns.shape, np.inf), np.full(columns.shape, -np.inf)
    x, y = columns - 0.5, rows - 0.5
    x0, y0 = np.floor(x), np.floor(y)
    for i, j in itertools.product(range(1 - reach, 1 + reach), repeat=2):
        weight = shape(y - y0 - i) * shape(x - x0 - j)
        row = np.clip(y0 + i, 0, values.shape[0] - 1).astype(np.intp)
        column = np.clip(x0 + j, 0, values.shape[1] - 1).astype(np.intp)
        one = values[row, column]
        total += np.where(weight != 0, weight * one, 0.0)
        low, high = np.fmin(low, one), np.fmax(high, one)
    return np.asarray(np.clip(total, low, high))


def _hat(t: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(1 - np.abs(t), 0.0))


def _keys(t: FloatArray) -> FloatArray:
    """R. Keys, Cubic convolution interpolation for digital image processing, 1981."""
    t = np.abs(t)
    near = (1.5 * t - 2.5) * t**2 + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.asarray(np.where(t <= 1, near, np.where(t < 2, far, 0.0)))
