"""A block-scaled FP8 kernel as one writes it in Triton, simulated in NumPy: a program for
each tile of C goes through K and loads codes and scales by offsets, clamped at the edges.

C = A Bᵀ, A [M, K] with a scale for each 1x128 of its codes, B [N, K] with one for each
128x128.
"""

import numpy as np

import octavo

TILE_M, TILE_N, STEP = 32, 64, 128


def matmul(a, a_scales, b, b_scales, program):
    """Launches a program for each tile of C."""
    c = np.zeros((len(a), len(b)), np.float32)
    for pid_m in range(-(-len(a) // TILE_M)):
        for pid_n in range(-(-len(b) // TILE_N)):
            rows = pid_m * TILE_M + np.arange(TILE_M)
            cols = pid_n * TILE_N + np.arange(TILE_N)
            rows, cols = rows[rows < len(a)], cols[cols < len(b)]  # masks
            c[np.ix_(rows, cols)] = program(pid_n, rows, cols, a, a_scales, b, b_scales)
    return c


def wrong_program(pid_n, rows, cols, a, a_scales, b, b_scales):
    """Computes a tile of C, and one of its lines is wrong."""
    total = np.zeros((len(rows), len(cols)), np.float32)
    for step in range(-(-a.shape[1] // STEP)):
        k = slice(step * STEP, (step + 1) * STEP)
        p = dot(a[rows, k], b[cols, k])
        sa = load(a_scales, rows, step)
        sb = load(b_scales, pid_n, step)
        total += p * sa[:, None] * sb
    return total


def program(pid_n, rows, cols, a, a_scales, b, b_scales):
    """Computes a tile of C."""
    total = np.zeros((len(rows), len(cols)), np.float32)
    for step in range(-(-a.shape[1] // STEP)):
        k = slice(step * STEP, (step + 1) * STEP)
        p = dot(a[rows, k], b[cols, k])
        sa = load(a_scales, rows, step)
        sb = load(b_scales, pid_n * TILE_N // 128, step)  # two tiles of C share a row of scales
        total += p * sa[:, None] * sb
    return total


def load(x, i, j):
    """Loads elements, the last where an offset is beyond."""
    return x[np.minimum(i, x.shape[0] - 1), np.minimum(j, x.shape[1] - 1)]


def dot(x, y):
    """Multiplies codes of E4M3 as a matrix unit of wide sums does: exactly, rounded once."""
    wide = octavo.decode(x, "E4M3").astype(np.float64) @ octavo.decode(y, "E4M3").astype(np.float64).T
    return wide.astype(np.float32)
