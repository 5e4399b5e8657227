"""paddle.Model: trains, evaluates, predicts, saves and loads, with and without descriptions of what it is fed."""

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import CheckpointMissing, UsageError
from fleet_mpi.paddle import nn
from fleet_mpi.paddle.static import InputSpec

X = np.random.default_rng(0).normal(size=(40, 4)).astype("float32")
Y = (X[:, :1] > 0).astype("int64")


class Samples(paddle.io.Dataset):
    """Two classes by the sign of the first number."""

    def __getitem__(self, index):
        return X[index], Y[index]

    def __len__(self):
        return len(X)


class Net(nn.Layer):
    """A network with arithmetic on its own parameter, dropout and a batch norm."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(4, 8), nn.BatchNorm1D(8)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(8, 2)
        self.scale = self.create_parameter([8], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x):
        return self.last(self.drop(self.norm(self.first(x)) * (self.scale * 2)))


def model_of(network=None, described=True, rate=0.1):
    """A prepared model."""
    network = network or nn.Linear(4, 2)
    specs = ([InputSpec([None, 4], "float32", "x")], [InputSpec([None, 1], "int64", "y")]) if described else ()
    model = paddle.Model(network, *specs)
    model.prepare(paddle.optimizer.Momentum(rate, parameters=model.parameters()), nn.CrossEntropyLoss(),
                  paddle.metric.Accuracy())
    return model


def array(parameter):
    """A parameter's value."""
    return paddle.static.global_scope().array(parameter.name).copy()


@pytest.mark.parametrize("described", (True, False))
def test_a_model_learns(described):
    paddle.seed(1)
    model = model_of(Net(), described)
    model.fit(Samples(), epochs=10, batch_size=8, verbose=0)
    result = model.evaluate(Samples(), batch_size=16, verbose=0)
    assert list(result) == ["loss", "acc"] and result["acc"] > 0.8 and len(result["loss"]) == 1
    logits, = model.predict(Samples(), batch_size=16, stack_outputs=True, verbose=0)
    assert (logits.argmax(1) == Y[:, 0]).mean() == result["acc"]
    by_batch, = model.predict(Samples(), batch_size=16, verbose=0)
    assert [len(one) for one in by_batch] == [16, 16, 8] and np.array_equal(np.concatenate(by_batch), logits)


def test_a_step_is_that_of_the_program_a_script_would_write():
    network = nn.Linear(4, 2)
    model = model_of(network)
    losses, metrics = model.train_batch([X], [Y])
    after = array(network.weight)
    model.eval_batch([X], [Y])
    assert np.array_equal(array(network.weight), after), "an evaluation trains nothing"
    assert len(losses) == 1 and np.size(losses[0]) == 1 and 0 <= metrics[0] <= 1
    before, bias = array(network.weight), array(network.bias)
    logits = X @ before + bias
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    (loss,), _ = model.train_batch([X], [Y])
    np.testing.assert_allclose(loss, -np.log(shares[np.arange(40), Y[:, 0]]).mean(), rtol=1e-4)
    gradient = X.T @ (shares - np.eye(2)[Y[:, 0]]) / 40
    velocity = paddle.static.global_scope().array(f"{network.weight.name}_velocity_0")
    np.testing.assert_allclose(before - array(network.weight), 0.1 * velocity, rtol=1e-4, atol=1e-6)
    assert np.abs(velocity - gradient).max() > 0, "momentum has a memory"


def test_the_scripts_own_programs_stay_as_they_were():
    network = Net()
    ops = len(paddle.static.default_main_program().global_block().ops)
    names = set(paddle.static.default_main_program().global_block().vars)
    model = model_of(network)
    model.train_batch([X], [Y]), model.eval_batch([X], [Y]), model.predict_batch([X])
    block = paddle.static.default_main_program().global_block()
    assert (len(block.ops), set(block.vars)) == (ops, names) and network.training


def test_dropout_and_moments_are_those_of_the_mode():
    model = model_of(Net(), rate=0.0)
    one, other = (model.train_batch([X], [Y])[0][0] for _ in range(2))
    assert one != other, "dropout drops"
    moved = array(model.network.norm._mean)
    assert moved.any(), "running moments move while it trains"
    one, other = (model.eval_batch([X], [Y])[0][0] for _ in range(2))
    assert one == other and np.array_equal(array(model.network.norm._mean), moved)
    assert np.array_equal(*(model.predict_batch([X])[0] for _ in range(2)))


def test_saved_loaded_and_trained_on_with_the_same_bits(tmp_path):
    model = model_of()
    model.train_batch([X], [Y])
    model.save(str(tmp_path / "kept"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.pdopt", "kept.pdparams"]
    want = [model.train_batch([X], [Y])[0][0] for _ in range(3)]
    model.load(str(tmp_path / "kept"))
    assert [model.train_batch([X], [Y])[0][0] for _ in range(3)] == want
    model.load(str(tmp_path / "kept.pdparams"), reset_optimizer=True)
    assert [model.train_batch([X], [Y])[0][0] for _ in range(3)] != want


def test_a_network_of_other_sizes_is_refused_or_takes_what_fits(tmp_path, capsys):
    model_of(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))).save(str(tmp_path / "kept"))
    other = model_of(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5)))
    with pytest.raises(UsageError, match=r"1.weight is \[3, 2\] in the file, \[3, 5\] in the network.*skip_mismatch"):
        other.load(str(tmp_path / "kept"))
    other.load(str(tmp_path / "kept"), skip_mismatch=True)
    assert "1.weight is [3, 2] in the file" in capsys.readouterr().err
    assert np.array_equal(array(other.network[0].weight), paddle.load(str(tmp_path / "kept.pdparams"))["0.weight"])
    with pytest.raises(CheckpointMissing, match="there is no .*none.pdparams"):
        other.load(str(tmp_path / "none"))


def test_a_model_for_inference(tmp_path):
    model = model_of(Net())
    model.save(str(tmp_path / "net"), training=False)
    executor = paddle.static.Executor()
    program, feeds, fetches = paddle.static.load_inference_model(str(tmp_path / "net"), executor)
    found, = executor.run(program, feed={feeds[0]: X}, fetch_list=fetches)
    assert feeds == ["x"] and np.array_equal(found, model.predict_batch([X])[0])


def test_several_inputs_losses_and_no_metric():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(4, 1), nn.Linear(2, 1)

        def forward(self, x, z, scale=1.0):
            return self.one(x) * scale, self.other(z)

    model = paddle.Model(Two())
    model.prepare(paddle.optimizer.SGD(0.05, parameters=model.parameters()),
                  lambda a, b, target: [nn.functional.mse_loss(a, target), nn.functional.mse_loss(b, target)])
    target = X[:, :1] - X[:, 1:2]
    first = model.train_batch([X, X[:, :2]], [target])
    for _ in range(60):
        last = model.train_batch([X, X[:, :2]], target)
    assert len(first) == 2 and all(one < two / 3 for one, two in zip(last, first))
    assert [one.shape for one in model.predict_batch([X, X[:, :2]])] == [(40, 1), (40, 1)]


def test_an_evaluation_without_a_loss():
    model = paddle.Model(nn.Linear(4, 2))
    model.prepare(metrics=paddle.metric.Accuracy(topk=(1, 2)))
    assert list(model.evaluate(Samples(), batch_size=8, verbose=0)) == ["acc_top1", "acc_top2"]


def test_loaders_and_streams_give_batches_too():
    class Stream(paddle.io.IterableDataset):
        def __iter__(self):
            return iter(zip(X, Y))

    model = model_of()
    for data in (paddle.io.DataLoader(Samples(), batch_size=20), Stream(), [(X, Y), (X[:7], Y[:7])]):
        model.fit(data, batch_size=20, verbose=0)
        assert 0 <= model.evaluate(data, batch_size=20, verbose=0)["acc"] <= 1


def test_a_custom_metric_gets_outputs_and_labels():
    class Seen(paddle.metric.Metric):
        def __init__(self):
            super().__init__()
            self.shapes = []

        def update(self, output, label):
            self.shapes.append((output.shape, label.shape))

        def reset(self):
            pass

        def accumulate(self):
            return len(self.shapes)

        def name(self):
            return "seen"

    metric, model = Seen(), paddle.Model(nn.Linear(4, 2))
    model.prepare(loss=nn.CrossEntropyLoss(), metrics=[metric])
    assert model.evaluate(Samples(), batch_size=32, verbose=0)["seen"] == 2
    assert metric.shapes == [((32, 2), (32, 1)), ((8, 2), (8, 1))]


@pytest.mark.parametrize("call, words", (
    (lambda: paddle.Model(3), "expected a network"),
    (lambda: paddle.Model(nn.Linear(4, 2), inputs=[3]), "expected inputs as paddle.static.InputSpec"),
    (lambda: paddle.Model(nn.Linear(4, 2)).prepare(loss=3), "expected a loss"),
    (lambda: paddle.Model(nn.Linear(4, 2)).prepare(metrics="acc"), "expected metrics of paddle.metric"),
    (lambda: paddle.Model(nn.Linear(4, 2)).train_batch([X], [Y]), r"call model.prepare\(optimizer, loss\) first"),
    (lambda: paddle.Model(nn.Linear(4, 2)).fit(), "expected train_data"),
    (lambda: paddle.Model(nn.Linear(4, 2)).save("net", training=False), "give paddle.Model"),
    (lambda: paddle.Model(nn.Linear(4, 2)).summary(), "expected input_size")))
def test_what_cannot_be_is_said(call, words):
    with pytest.raises(UsageError, match=words):
        call()
