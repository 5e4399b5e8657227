"""Attention and the transformer against numpy, with and without masks and caches; and one that learns."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import transformer
from fleet_mpi.program.layers.classes import MSELoss
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import Adam

X = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def dense(layer, x):
    return x @ global_scope().array(layer.weight.name) + global_scope().array(layer.bias.name)


def attention(layer, query, key, mask=0.0):
    """The definition, head by head."""
    q, k, v = (dense(one, x) for one, x in ((layer.q_proj, query), (layer.k_proj, key), (layer.v_proj, key)))
    width, parts = layer.head_dim, []
    for head in range(layer.num_heads):
        cut = slice(head * width, (head + 1) * width)
        scores = q[..., cut] @ k[..., cut].swapaxes(1, 2) / np.sqrt(width) + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        parts.append(weights / weights.sum(-1, keepdims=True) @ v[..., cut])
    return dense(layer.out_proj, np.concatenate(parts, -1))


def normal(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def x_fed(name="x"):
    return static_data(name, [None, 3, 8])


def test_attention_is_what_its_definition_says():
    layer = transformer.MultiHeadAttention(8, 2, need_weights=True)
    out, weights = layer(x_fed())
    found, shares = run(out, weights, x=X)
    np.testing.assert_allclose(found, attention(layer, X, X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-5)
    assert len(layer.parameters()) == 8


@pytest.mark.parametrize("kind", ["bool", "int64", "float32"])
def test_what_a_mask_leaves_out_counts_nothing(kind):
    layer = transformer.MultiHeadAttention(8, 2)
    seen = np.tril(np.ones((3, 3), bool))
    mask = np.where(seen, 0, -1e9).astype("float32") if kind == "float32" else seen.astype(kind)
    found, = run(layer(x_fed(), attn_mask=static_data("mask", [3, 3], kind)), x=X, mask=mask)
    np.testing.assert_allclose(found, attention(layer, X, X, np.where(seen, 0, -1e9)), rtol=1e-4, atol=1e-5)


def test_the_mask_of_a_decoder_is_minus_infinity_ahead():
    found, = run(transformer.Transformer.generate_square_subsequent_mask(3))
    assert found.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]


def test_steps_one_by_one_with_a_cache_equal_all_at_once():
    layer = transformer.MultiHeadAttention(8, 2)
    x = x_fed()
    seen = np.tril(np.ones((3, 3), bool))
    whole = layer(x, attn_mask=static_data("mask", [3, 3], "bool"))
    cache, outs = layer.gen_cache(x), []
    for i in range(3):
        out, cache = layer(x[:, i:i + 1], cache=cache)
        outs.append(out)
    found = run(whole, *outs, x=X, mask=seen)
    np.testing.assert_allclose(np.concatenate(found[1:], 1), found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("before", [False, True])
def test_an_encoder_layer_adds_its_parts_to_what_came_in(before):
    layer = transformer.TransformerEncoderLayer(8, 2, 16, dropout=0.0, normalize_before=before)
    found, = run(layer(x_fed()), x=X)

    def feed_forward(x):
        return dense(layer.linear2, np.maximum(dense(layer.linear1, x), 0))
    if before:
        middle = X + attention(layer.self_attn, normal(X), normal(X))
        want = middle + feed_forward(normal(middle))
    else:
        middle = normal(X + attention(layer.self_attn, X, X))
        want = normal(middle + feed_forward(middle))
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


def test_a_transformer_of_several_layers_has_parameters_of_its_own_in_each_and_learns():
    model = transformer.Transformer(8, 2, 2, 2, 16, dropout=0.0)
    names = [param.name for param in model.parameters()]
    assert len(names) == len(set(names)) == 2 * (8 + 4 + 4) + 2 * (16 + 4 + 6)
    loss = mean(MSELoss()(model(x_fed("source"), x_fed("target")), x_fed("wanted")))
    Adam(0.01).minimize(loss)
    executor = Executor()
    executor.run(default_startup_program())
    feed = {"source": X, "target": X[:, ::-1].copy(), "wanted": normal(X * X)}
    losses = [float(executor.run(feed=feed, fetch_list=[loss])[0][0]) for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_decoder_with_caches_goes_on_from_them():
    layer = transformer.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
    decoder = transformer.TransformerDecoder(layer, 2)
    memory, x = x_fed("memory"), x_fed()
    whole = decoder(x, memory, static_data("mask", [3, 3], "bool"))
    caches, outs = decoder.gen_cache(memory), []
    for i in range(3):
        out, caches = decoder(x[:, i:i + 1], memory, cache=caches)
        outs.append(out)
    found = run(whole, *outs, x=X, memory=X[::-1].copy(), mask=np.tril(np.ones((3, 3), bool)))
    np.testing.assert_allclose(np.concatenate(found[1:], 1), found[0], rtol=1e-3, atol=1e-4)
    assert len(decoder.gen_cache(memory, do_zip=True)) == 2


def test_heads_must_divide_the_width():
    with pytest.raises(UsageError, match="divisible by num_heads"):
        transformer.MultiHeadAttention(8, 3)


def test_dropout_of_attention_is_for_training_only():
    x = static_data("x", [None, 3, 8], "float32")
    layer = transformer.TransformerEncoder(transformer.TransformerEncoderLayer(8, 2, 16, dropout=0.5), 1)
    trained = layer(x)
    layer.eval()
    first, second, third = run(trained, layer(x), layer(x), x=X)
    assert (second == third).all() and (first != second).any()
