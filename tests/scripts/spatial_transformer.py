"""1.x images: an affine map learned through affine_grid and grid_sampler, then norms, patches and a deformable
layer."""

import numpy as np
import paddle.fluid as fluid

fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
layers = fluid.layers

picture = fluid.data(name="picture", shape=[None, 1, 8, 8], dtype="float32")
wanted = fluid.data(name="wanted", shape=[None, 1, 8, 8], dtype="float32")
theta = layers.create_parameter([1, 2, 3], "float32", name="theta", default_initializer=(
    fluid.initializer.NumpyArrayInitializer(np.array([[[1, 0, 0], [0, 1, 0]]], "float32"))))
theta = layers.expand_as(theta, layers.reshape(layers.slice(picture, [2, 3], [0, 0], [2, 3]), [-1, 2, 3]))
grid = layers.affine_grid(theta, out_shape=[4, 1, 8, 8])
moved = layers.grid_sampler(picture, grid)
shift_loss = layers.mean(layers.square_error_cost(moved, wanted))

up = layers.resize_nearest(moved, scale=2)
hidden = layers.group_norm(layers.conv2d(up, 8, 3, padding=1), groups=4, act="relu")
hidden = layers.instance_norm(layers.maxout(hidden, groups=2))
offset = layers.conv2d(hidden, 18, 3, padding=1, param_attr=fluid.initializer.Constant(0.0))
mask = layers.sigmoid(layers.conv2d(hidden, 9, 3, padding=1))
hidden = layers.deformable_conv(hidden, offset, mask, num_filters=4, filter_size=3, padding=1)
patches = layers.im2sequence(hidden, filter_size=[8, 8], stride=[8, 8])
score = layers.fc(layers.sequence_pool(patches, "average"), size=1)
label = fluid.data(name="label", shape=[None, 1], dtype="float32")
score_loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(score, label))
fluid.optimizer.Adam(learning_rate=0.03).minimize(shift_loss + score_loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(0)
rows, columns = np.mgrid[0:8, 0:8]
for step in range(160):
    tops = rng.uniform(2, 4, (4, 2, 1, 1))
    pictures = np.exp(-((rows - tops[:, 0]) ** 2 + (columns - tops[:, 1]) ** 2) / 4)[:, None].astype("float32")
    targets = np.exp(-((rows - tops[:, 0] - 1) ** 2 + (columns - tops[:, 1] - 1) ** 2) / 4)[:, None].astype("float32")
    labels = (tops[:, 0, 0] > tops[:, 1, 0]).astype("float32")
    found = exe.run(feed={"picture": pictures, "wanted": targets, "label": labels}, fetch_list=[shift_loss, score_loss])
    if step == 0:
        first = found
print("shift_first=%g shift_last=%g score_last=%g" % (first[0][0], found[0][0], found[1][0]))
learned = np.array(fluid.global_scope().find_var("theta").get_tensor())
print("moved_x=%g moved_y=%g" % (learned[0, 0, 2], learned[0, 1, 2]))
