"""The Python listings of the guides in ``../shared/seeds``, where they lie beside this checkout."""

import re
import textwrap
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
FENCED = re.compile(r"^``` ?python\n(.*?)^```", re.M | re.S)
DIRECTIVE = re.compile(r"^( *)\.\. code(?:-block)?:: (?:python|py)\n((?:\1 +.*\n| *\n)+)", re.M)

are_here = pytest.mark.skipif(not SEEDS.is_dir(),
                              reason="the guides (../shared/seeds) are not beside this checkout")

# What the guide 000 leaves to its reader: a network, data, and where its fleet begins.
SUPPLIED_000 = """
    import numpy as np, paddle, paddle.fluid as fluid
    from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    fleet.init()
    x = fluid.layers.data(name="x", shape=[4])
    y = fluid.layers.data(name="y", shape=[1], dtype="int64")

    def model():
        global auc, auc_batch
        predict = fluid.layers.fc(x, 2, act="softmax")
        auc, auc_batch, _ = fluid.layers.auc(input=predict, label=y)
        return fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=y))

    def fake_reader():
        rows = np.random.RandomState(fleet.worker_index()).rand(48, 4).astype("float32")
        return lambda: ((row, int(row.sum() > 2)) for row in rows)
    """


def listings(number):
    """The Python listings of a guide, in order."""
    text = next(SEEDS.glob(f"{number}_*")).read_text()
    found = [(match.start(), match[1]) for match in FENCED.finditer(text)]
    found += [(match.start(), textwrap.dedent(match[2])) for match in DIRECTIVE.finditer(text)]
    # One page has a blank behind a backslash that continues a line.
    return [re.sub(r"\\ +\n", "\\\\\n", code) for _, code in sorted(found)]
