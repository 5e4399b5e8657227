"""1.x: a policy learned by its own samples, with distributions; and SGD with differential privacy."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.layers import Categorical, MultivariateNormalDiag, Normal, Uniform

fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 5
state = fluid.data(name="state", shape=[None, 4], dtype="float32")
action = fluid.data(name="action", shape=[None, 1], dtype="int64")
reward = fluid.data(name="reward", shape=[None, 1], dtype="float32")
logits = fluid.layers.fc(state, size=4)
policy = Categorical(logits)
chosen = fluid.layers.softmax_with_cross_entropy(logits, action)
entropy = fluid.layers.mean(policy.entropy())
even = Categorical(fluid.layers.zeros_like(logits))
apart = fluid.layers.mean(policy.kl_divergence(even))
loss = fluid.layers.mean(chosen * reward) - 0.01 * entropy
shares = fluid.layers.softmax(logits)
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Dpsgd(learning_rate=1.0, clip=0.9, batch_size=32.0, sigma=0.01).minimize(loss)

normal, uniform = Normal(0.0, 2.0), Uniform([0.0, 1.0], [1.0, 3.0])
diagonal = MultivariateNormalDiag(np.zeros(2, "float32"), np.eye(2, dtype="float32"))
numbers = [normal.sample([1000]), uniform.sample([1000]), diagonal.entropy(), normal.kl_divergence(Normal(1.0, 2.0))]

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(0)
for step in range(120):
    where = rng.randint(0, 4, 32)
    states = np.eye(4, dtype="float32")[where]
    fed = {"state": states, "action": np.zeros((32, 1), "int64"), "reward": np.zeros((32, 1), "float32")}
    likely = exe.run(test_program, feed=fed, fetch_list=[shares])[0]
    actions = np.array([rng.choice(4, p=row / row.sum()) for row in likely.astype("float64")])
    rewards = (actions == (where + 1) % 4).astype("float32") - 0.25
    fed.update(action=actions[:, None].astype("int64"), reward=rewards[:, None])
    found = exe.run(feed=fed, fetch_list=[entropy, apart])
drawn = exe.run(feed=fed, fetch_list=numbers)
print("right=%g entropy=%g apart=%g" % ((actions == (where + 1) % 4).mean(), found[0][0], found[1][0]))
print("spread=%g middle=%g both=%g off=%g" % (drawn[0].std(), drawn[1][:, 1].mean(), drawn[2][0], drawn[3][0]))
