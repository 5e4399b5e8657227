"""Models whose parameters are used inside bodies: loops, branches, steps of sequences."""

import fleet_mpi.fluid as fluid

layers = fluid.layers


def _error(prediction):
    y = layers.data(name="y", shape=[1])
    return layers.mean(layers.square_error_cost(prediction, y))


def _words():
    ids = layers.data(name="ids", shape=[4], dtype="int64")
    return layers.unsqueeze(ids, [2])


def _looked_up(ids):
    return layers.embedding(ids, size=[2000, 10], is_sparse=True, param_attr=fluid.ParamAttr(name="table"))


def steps():
    """A table and weights that only the body of a StaticRNN reads, with dropout in it."""
    words = layers.transpose(_words(), [1, 0, 2])
    rnn = layers.StaticRNN()
    with rnn.step():
        word = _looked_up(rnn.step_input(words))
        before = rnn.memory(shape=[-1, 12], batch_ref=words)
        hidden = layers.dropout(layers.fc([word, before], 12, act="tanh"), 0.2)
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    return _error(layers.fc(layers.reduce_mean(rnn(), dim=0), 1))


def sequences():
    """A table and weights that only the body of a DynamicRNN reads; sequences of 1 to 4 words."""
    words = _words()
    lengths = layers.reshape(layers.slice(words, [1], [0], [1]), [-1])
    lengths = layers.elementwise_mod(lengths, layers.fill_constant([1], "int64", 4)) + 1
    rnn = layers.DynamicRNN()
    sentence = layers.sequence_unpad(words, lengths)
    with rnn.block():
        word, before = _looked_up(rnn.step_input(sentence)), rnn.memory(shape=[12], value=0.1)
        hidden = layers.fc([word, before], 12, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return _error(layers.fc(layers.sequence_last_step(rnn()), 1))


def loop():
    """A While that uses 33,800 weights again and again, as often as the batch says."""
    x = layers.data(name="x", shape=[13])
    i, last = layers.fill_constant([1], "float32", 0.0), layers.abs(layers.reduce_mean(x)) * 10.0 + 2.0
    more, state = layers.less_than(i, last), layers.scale(x, 0.5)
    with layers.While(more).block():
        wide = layers.fc(state, 1300, act="tanh", param_attr=fluid.ParamAttr(name="wide"))
        layers.assign(layers.fc(wide, 13, act="tanh", param_attr=fluid.ParamAttr(name="back")), state)
        layers.increment(i)
        layers.less_than(i, last, cond=more)
    return _error(layers.fc(state, 1))


def branch():
    """A branch that some workers take: where it is not taken, its gradients are zero."""
    x = layers.data(name="x", shape=[13])
    flag = layers.less_than(layers.reduce_mean(x), layers.fill_constant([1], "float32", 0.0))
    return _error(layers.cond(flag, lambda: layers.fc(x, 1), lambda: layers.fc(layers.fc(x, 5, act="tanh"), 1)))
