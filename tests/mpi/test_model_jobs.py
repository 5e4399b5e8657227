"""paddle.Model on two ranks: one model, metrics and predictions of all samples, files of the first worker only."""

import re

from tests.mpi.jobs import run_job

SCRIPT = """
import hashlib, os, sys
import numpy as np
from fleet_mpi import paddle
from fleet_mpi.paddle import nn

folder, way = sys.argv[1:]
if way == "init":
    paddle.distributed.fleet.init(is_collective=True)
X = np.random.RandomState(0).normal(size=(41, 4)).astype("float32")
Y = (X[:, :1] > 0).astype("int64")


class Samples(paddle.io.Dataset):
    def __getitem__(self, index):
        return X[index], Y[index]

    def __len__(self):
        return len(X)


class Seen(paddle.metric.Metric):
    def __init__(self):
        self.count = 0

    def update(self, output, label):
        self.count += len(label)

    def reset(self):
        self.count = 0

    def accumulate(self):
        return self.count

    def name(self):
        return "seen"


model = paddle.Model(nn.Linear(4, 2))
model.prepare(paddle.optimizer.Momentum(0.5, parameters=model.parameters()), nn.CrossEntropyLoss(),
              [paddle.metric.Accuracy(), Seen()])
model.fit(Samples(), batch_size=4, epochs=3, verbose=2, log_freq=100, save_dir=folder)
result = model.evaluate(Samples(), batch_size=4, verbose=0)
logits, = model.predict(Samples(), batch_size=4, stack_outputs=True, verbose=0)
weights = b"".join(np.array(one).tobytes() for one in model.network.state_dict().values())
values = [np.array(one) for one in model.network.state_dict().values()]
assert result["seen"] == 41, result
assert np.allclose(logits, X @ values[0] + values[1], atol=1e-5), "in the order of the samples"
assert result["acc"] == (logits.argmax(1) == Y[:, 0]).mean() > 0.9, result
print("sha", hashlib.sha256(weights).hexdigest())
"""


def test_two_ranks_train_one_model(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "files").mkdir()
    for way in ("init", "none"):
        ended = run_job(2, [tmp_path / "train.py", tmp_path / "files", way], cwd=tmp_path,
                        env={"FLEET_MPI_THREADS": "1"}, timeout=240)
        assert ended.code == 0, ended.story()
        shas = [re.search(r"sha (\w+)", rank.out)[1] for rank in ended.ranks]
        assert shas[0] == shas[1] and "Epoch 3/3" in ended.ranks[0].out and "Epoch" not in ended.ranks[1].out
    assert {path.name for path in (tmp_path / "files").iterdir()} == {
        f"{name}.{kind}" for name in ("0", "1", "2", "final") for kind in ("pdparams", "pdopt")}
