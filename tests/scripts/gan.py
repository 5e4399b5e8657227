"""A GAN in the manner of the book: programs that share parameters by name, fetches that are given as a set of one."""

import numpy as np
import paddle.fluid as fluid

NOISE, BATCH = 8, 64


def bn(x, name=None, act="relu"):
    return fluid.layers.batch_norm(input=x, param_attr=name + "1", bias_attr=name + "2",
                                   moving_mean_name=name + "3", moving_variance_name=name + "4", name=name, act=act)


def D(x):
    h = fluid.layers.fc(input=x, size=32, act="leaky_relu", param_attr="d_w1", bias_attr="d_b1")
    return fluid.layers.fc(input=h, size=1, act="sigmoid", param_attr="d_w2", bias_attr="d_b2")


def G(z, name="G"):
    with fluid.unique_name.guard(name + "/"):
        y = fluid.layers.fc(z, size=4 * 2 * 2, param_attr="g_w1", bias_attr="g_b1")
        y = bn(y, name="g_bn")
        y = fluid.layers.reshape(y, [-1, 4, 2, 2])
        y = fluid.layers.conv2d_transpose(input=y, num_filters=1, output_size=[4, 4], filter_size=4, stride=2,
                                          padding=1, param_attr="g_w2", bias_attr="g_b2", use_cudnn=True, act="tanh")
        return fluid.layers.reshape(y, shape=[-1, 16])


def loss(x, label):
    return fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(x=x, label=label))


d_program, dg_program = fluid.Program(), fluid.Program()
fluid.default_startup_program().random_seed = 5
with fluid.program_guard(d_program):
    img = fluid.data(name="img", shape=[None, 16], dtype="float32")
    d_loss = loss(D(img), fluid.data(name="label", shape=[None, 1], dtype="float32"))
with fluid.program_guard(dg_program):
    noise = fluid.data(name="noise", shape=[None, NOISE], dtype="float32")
    g_img = G(noise)
    g_program = dg_program.clone()
    g_program_test = dg_program.clone(for_test=True)
    dg_logit = D(g_img)
    noise_shape = fluid.layers.shape(noise)
    dg_loss = loss(dg_logit, fluid.layers.fill_constant(dtype="float32", shape=[noise_shape[0], 1], value=1.0))
opt = fluid.optimizer.Adam(learning_rate=2E-3, beta1=0.5)
opt.minimize(loss=d_loss)
parameters = [p.name for p in g_program.global_block().all_parameters()]
opt.minimize(loss=dg_loss, parameter_list=parameters)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(1)
real = np.tile(np.sign(np.sin(np.arange(16) * 0.8)), (BATCH, 1)).astype("float32") * 0.9
distances = []
for step in range(100):
    z = rng.uniform(-1, 1, (BATCH, NOISE)).astype("float32")
    fake, = exe.run(g_program, feed={"noise": z}, fetch_list={g_img})
    d_loss_1 = exe.run(d_program, feed={"img": fake, "label": np.zeros((BATCH, 1), "float32")},
                       fetch_list={d_loss})[0][0]
    d_loss_2 = exe.run(d_program, feed={"img": real, "label": np.ones((BATCH, 1), "float32")},
                       fetch_list={d_loss})[0][0]
    for _ in range(2):
        z = rng.uniform(-1, 1, (BATCH, NOISE)).astype("float32")
        dg_loss_np = exe.run(dg_program, feed={"noise": z}, fetch_list={dg_loss})[0][0]
    made, = exe.run(g_program_test, feed={"noise": z}, fetch_list=[g_img])
    distances.append(np.abs(made - real).mean())
print("parameters=%d d_loss=%f g_loss=%f first=%f last=%f" % (
    len(parameters), d_loss_1 + d_loss_2, dg_loss_np, distances[0], distances[-1]))
