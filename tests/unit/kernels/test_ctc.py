"""CTC kernel: both versions agree, by LoD and padded, on labels that fit, repeat, are absent or too long."""

import numpy as np

SEQUENCES = ([7, 4, 1, 6, 3], [[1, 1, 2], [], [3], [2, 1, 2], [1, 1, 1]])


def made(dtype, is_padded):
    def make(rng):
        lengths, labels = np.array(SEQUENCES[0]), SEQUENCES[1]
        count, rows = len(lengths), int(lengths.sum())
        starts, stride = (np.arange(count), count) if is_padded else (np.cumsum(lengths) - lengths, 1)
        logits = rng.normal(size=(7 * count if is_padded else rows, 4)).astype(dtype)
        ends = np.cumsum([len(one) for one in labels])
        begins = np.append(0, ends[:-1])
        return (logits, np.array(sum(labels, [])), starts, stride, lengths, begins, ends, 0, np.empty(count, dtype),
                np.empty_like(logits))
    return make


KERNEL_CASES = {"ctc_cost": [made(dtype, padded) for dtype in (np.float32, np.float64) for padded in (False, True)]}
KERNEL_TOLERANCES = {"ctc_cost": 1e-5}
