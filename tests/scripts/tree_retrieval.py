"""A tree-based deep model: trained on samples of every layer of an index tree, then asked for items by walking it."""

import numpy as np
import paddle.fluid as fluid

USERS, ITEMS, CHILDREN, BEAM = 24, 16, 2, 3
LAYERS, NEGATIVES = [2, 4, 8, 16], [1, 2, 3, 6]
NODES = 1 + sum(LAYERS)                                             # node 0 is the root
first_leaf = NODES - ITEMS
parents = [0] + [(node - 1) // 2 for node in range(1, NODES)]

tree_info, travel = [], []
for node in range(NODES):
    item = node - first_leaf + 1 if node >= first_leaf else 0      # items are counted from 1 on: 0 is no leaf
    layer = int(np.log2(node + 1))
    children = [2 * node + 1, 2 * node + 2] if node < first_leaf else [0, 0]
    tree_info.append([item, layer, parents[node]] + children)
for leaf in range(first_leaf, NODES):
    path = [leaf]
    while parents[path[0]]:
        path.insert(0, parents[path[0]])
    travel.append(path)


def score(user, nodes, count):
    """Logits of [not wanted, wanted] for each of ``count`` nodes."""
    user_emb = fluid.layers.embedding(user, size=[USERS, 16], param_attr=fluid.ParamAttr(name="user_emb"))
    node_emb = fluid.layers.embedding(nodes, size=[NODES, 16], param_attr=fluid.ParamAttr(name="node_emb"))
    user_emb = fluid.layers.expand(fluid.layers.reshape(user_emb, [-1, 1, 16]), [1, count, 1])
    both = fluid.layers.concat([user_emb, node_emb, user_emb * node_emb], axis=2)
    hidden = fluid.layers.fc(both, size=24, num_flatten_dims=2, act="tanh", param_attr=fluid.ParamAttr(name="fc1.w"),
                             bias_attr=fluid.ParamAttr(name="fc1.b"))
    return fluid.layers.fc(hidden, size=2, num_flatten_dims=2, param_attr=fluid.ParamAttr(name="fc2.w"),
                           bias_attr=fluid.ParamAttr(name="fc2.b"))


train, startup = fluid.Program(), fluid.Program()
train.random_seed = startup.random_seed = 7
with fluid.program_guard(train, startup):
    user = fluid.data(name="user", shape=[None, 1], dtype="int64")
    item = fluid.data(name="item", shape=[None, 1], dtype="int64")
    samples, labels, masks = fluid.contrib.layers.tdm_sampler(
        item, NEGATIVES, LAYERS, ITEMS,
        tree_travel_attr=fluid.ParamAttr(name="tree_travel", initializer=fluid.initializer.NumpyArrayInitializer(
            np.array(travel))),
        tree_layer_attr=fluid.ParamAttr(name="tree_layer", initializer=fluid.initializer.NumpyArrayInitializer(
            np.arange(1, NODES))),
        output_positive=True, output_list=True, tree_dtype="int64", dtype="int64")
    nodes, label, mask = (fluid.layers.concat(one, axis=1) for one in (samples, labels, masks))
    count = sum(NEGATIVES) + len(NEGATIVES)
    logits = score(user, nodes, count)
    costs = fluid.layers.softmax_with_cross_entropy(logits, label)
    costs = fluid.layers.gather_nd(costs, fluid.layers.where(fluid.layers.not_equal(
        mask, fluid.layers.zeros_like(mask))))
    cost = fluid.layers.reduce_mean(costs)
    fluid.optimizer.Adam(learning_rate=0.02).minimize(cost)

walk = fluid.Program()
with fluid.program_guard(walk, startup):
    user = fluid.data(name="user", shape=[None, 1], dtype="int64")
    at = fluid.data(name="at", shape=[None, BEAM], dtype="int64")
    child, is_leaf = fluid.contrib.layers.tdm_child(
        at, NODES, CHILDREN, dtype="int64", param_attr=fluid.ParamAttr(
            name="tree_info", initializer=fluid.initializer.NumpyArrayInitializer(np.array(tree_info))))
    child = fluid.layers.reshape(child, [-1, BEAM * CHILDREN])
    chances = fluid.layers.softmax(score(user, fluid.layers.unsqueeze(child, [2]), BEAM * CHILDREN))
    wanted = fluid.layers.reshape(fluid.layers.slice(chances, axes=[2], starts=[1], ends=[2]), [-1, BEAM * CHILDREN])
    wanted = wanted * fluid.layers.cast(child > 0, "float32")       # where a node has no child
    _, places = fluid.layers.topk(wanted, k=BEAM)
    leaves = fluid.layers.reduce_sum(is_leaf)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
rng = np.random.RandomState(1)
liked = rng.randint(0, ITEMS, USERS)
first = last = None
for step in range(150):
    users = rng.randint(0, USERS, (48, 1))
    last, = exe.run(train, feed={"user": users, "item": liked[users]}, fetch_list=[cost])
    first = last if first is None else first

users, at = np.arange(USERS).reshape(-1, 1), np.tile([1, 2, 0], (USERS, 1))
for layer in LAYERS[1:]:
    children, order, found = exe.run(walk, feed={"user": users, "at": at}, fetch_list=[child, places, leaves])
    at = np.take_along_axis(children, order, axis=1)
print("first=%f last=%f" % (first[0], last[0]))
print("right=%f among=%f leaves=%d" % ((at[:, 0] - first_leaf == liked).mean(),
                                       (at - first_leaf == liked[:, None]).any(axis=1).mean(), found[0]))
