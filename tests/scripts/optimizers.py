"""The same small network under every optimizer and wrapper of the distributed tests; each must make it better."""

import numpy as np
import paddle.fluid as fluid

BATCH, STEPS = 32, 30
RNG = np.random.RandomState(0)
X = RNG.randn(BATCH * 4, 8).astype("float32")
Y = (X @ RNG.randn(8, 1) + 0.5).astype("float32")


def build(make, clip=None, regularizer=None):
    """A program with its loss and its optimizer, made by `make(loss, checkpoints)`."""
    main_program, startup = fluid.Program(), fluid.Program()
    main_program.random_seed = startup.random_seed = 1
    with fluid.program_guard(main_program, startup), fluid.unique_name.guard():
        x = fluid.layers.data(name="x", shape=[8], dtype="float32")
        y = fluid.layers.data(name="y", shape=[1], dtype="float32")
        hidden1 = fluid.layers.fc(x, size=16, act="tanh",
                                  param_attr=fluid.ParamAttr(name="w1", learning_rate=1.5, regularizer=regularizer))
        hidden2 = fluid.layers.fc(hidden1, size=16, act="relu")
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden2, size=1), y))
        if clip is not None:
            fluid.clip.set_gradient_clip(clip)
        extra = make(loss, [hidden1, hidden2])
    return main_program, startup, loss, extra


def train(name, make, **options):
    main_program, startup, loss, extra = build(make, **options)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        losses = []
        for step in range(STEPS):
            rows = slice(step % 4 * BATCH, (step % 4 + 1) * BATCH)
            losses.append(float(exe.run(main_program, feed={"x": X[rows], "y": Y[rows]}, fetch_list=[loss])[0]))
        first, last = np.mean(losses[:4]), np.mean(losses[-4:])
        print("%s: %f -> %f" % (name, first, last))
        assert last < 0.9 * first, (name, first, last)
        if hasattr(extra, "apply"):
            averaged(exe, main_program, extra, loss)
    return last


def averaged(exe, main_program, ema, loss):
    """An average is applied only inside its guard."""
    def weight():
        return np.array(fluid.global_scope().find_var("w1").get_tensor())

    before = weight()
    with ema.apply(exe):
        assert (weight() != before).any(), "the average differs from the last values"
    assert (weight() == before).all(), "the last values come back"


def plain(optimizer):
    return lambda loss, checkpoints: optimizer.minimize(loss) and None


def recompute(loss, checkpoints):
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(learning_rate=0.01))
    optimizer._set_checkpoints(checkpoints)
    optimizer.minimize(loss)


def backward_then_apply(loss, checkpoints):
    optimizer = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9)
    params_grads = optimizer.backward(loss)
    params_grads = [(p, g) for p, g in params_grads if p.trainable]
    optimizer.apply_gradients(params_grads)


def with_average(loss, checkpoints):
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)
    ema = fluid.optimizer.ExponentialMovingAverage(0.9)
    ema.update()
    return ema


def with_scaling(loss, checkpoints):
    optimizer = fluid.contrib.mixed_precision.decorator.decorate(
        fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9), init_loss_scaling=8.0,
        use_dynamic_loss_scaling=True)
    optimizer.minimize(loss)


def clipped(optimizer, clip):
    return lambda loss, checkpoints: optimizer(grad_clip=clip).minimize(loss) and None


def main():
    o = fluid.optimizer
    plain_optimizers = {
        "sgd": o.SGDOptimizer(0.02), "momentum": o.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
        "lars": o.LarsMomentumOptimizer(learning_rate=0.02, momentum=0.9, lars_coeff=0.5),
        "dgc": o.DGCMomentumOptimizer(learning_rate=0.02, momentum=0.9, rampup_begin_step=5, rampup_step=2,
                                      sparsity=[0.5, 0.75], num_trainers=1),
        "adagrad": o.Adagrad(0.1), "decayed": o.DecayedAdagradOptimizer(0.02), "adam": o.Adam(0.01),
        "adamax": o.Adamax(0.02), "adadelta": o.AdadeltaOptimizer(1.0, epsilon=1e-2, rho=0.9),
        "rmsprop": o.RMSPropOptimizer(0.01, momentum=0.5, centered=True), "ftrl": o.Ftrl(0.1),
        "lamb": o.LambOptimizer(0.05, lamb_weight_decay=0.01),
    }
    results = {name: train(name, plain(optimizer)) for name, optimizer in plain_optimizers.items()}
    results["recompute"] = train("recompute", recompute)
    assert np.isclose(results["recompute"], results["adam"], rtol=1e-5), "recomputing changes no number"
    results["merged"] = train("merged", lambda loss, _: o.GradientMergeOptimizer(
        o.SGD(learning_rate=0.08), k_steps=4, avg=True).minimize(loss) and None)
    results["two_halves"] = train("two_halves", backward_then_apply)
    results["average"] = train("average", with_average)
    results["scaled"] = train("scaled", with_scaling)
    clip = fluid.clip.GradientClipByGlobalNorm
    results["global_norm"] = train("global_norm", plain(o.SGD(0.05)), clip=clip(clip_norm=1.0))
    results["by_value"] = train("by_value", clipped(
        lambda grad_clip: o.SGD(0.05, grad_clip=grad_clip), fluid.clip.GradientClipByValue(max=0.1, min=-0.1)))
    results["by_norm"] = train("by_norm", clipped(
        lambda grad_clip: o.SGD(0.05, grad_clip=grad_clip), fluid.clip.GradientClipByNorm(clip_norm=0.5)))
    l2 = fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-3)
    results["l2"] = train("l2", plain(o.SGD(0.02, regularization=l2)))
    results["l1"] = train("l1", plain(o.SGD(0.02)), regularizer=fluid.regularizer.L1DecayRegularizer(1e-3))
    assert len({results["sgd"], results["l2"], results["l1"]}) == 3, "decay changes the numbers"
    print("optimizers=%d worst=%f" % (len(results), max(results.values())))


if __name__ == "__main__":
    main()
