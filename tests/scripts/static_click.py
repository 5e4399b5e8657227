"""A click model with the 2.x names: layer classes inside a static program, a non-iterable loader, fleet."""

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.distributed.fleet.base import role_maker

paddle.enable_static()

DENSE, SLOTS, VOCAB, EMB = 5, 4, 100, 8
BATCH = 32


class DNNLayer(nn.Layer):
    """Embeddings of all slots beside the dense features, then two hidden layers."""

    def __init__(self, layer_sizes):
        super(DNNLayer, self).__init__()
        self.embedding = nn.Embedding(VOCAB, EMB, sparse=True, weight_attr=paddle.ParamAttr(
            name="SparseFeatFactors", initializer=nn.initializer.Uniform(-0.05, 0.05)))
        sizes = [DENSE + SLOTS * EMB] + layer_sizes + [2]
        self._mlp_layers = []
        for i in range(len(sizes) - 1):
            linear = nn.Linear(in_features=sizes[i], out_features=sizes[i + 1],
                               weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(
                                   std=1.0 / np.sqrt(sizes[i]))))
            self.add_sublayer("linear_%d" % i, linear)
            self._mlp_layers.append(linear)
            if i < len(sizes) - 2:
                act = nn.ReLU()
                self.add_sublayer("act_%d" % i, act)
                self._mlp_layers.append(act)

    def forward(self, sparse_inputs, dense_inputs):
        embs = [paddle.reshape(self.embedding(s_input), shape=[-1, EMB]) for s_input in sparse_inputs]
        y = paddle.concat(x=embs + [dense_inputs], axis=1)
        for layer in self._mlp_layers:
            y = layer(y)
        return y


class Model:
    """The inputs, the network, its cost and metrics."""

    def __init__(self):
        self.dense = paddle.static.data(name="dense_input", shape=[None, DENSE], dtype="float32")
        self.sparse = [paddle.static.data(name="C%d" % i, shape=[None, 1], dtype="int64") for i in range(SLOTS)]
        self.label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
        self.inputs = [self.label] + self.sparse + [self.dense]

    def net(self):
        dnn = DNNLayer([32, 16])
        print("parameters=%d" % len(dnn.parameters()))
        predict_2d = F.softmax(dnn(self.sparse, self.dense))
        self.predict = predict_2d
        auc, batch_auc, self.auc_states = paddle.static.auc(input=predict_2d, label=self.label,
                                                            num_thresholds=2 ** 12, slide_steps=20)
        positive = paddle.slice(predict_2d, axes=[1], starts=[1], ends=[2])
        cost = F.log_loss(input=positive, label=paddle.cast(self.label, dtype="float32"))
        self.auc, self.batch_auc = auc, batch_auc
        self.avg_cost = paddle.mean(x=cost)


def samples():
    rng = np.random.RandomState(8)
    weight = np.random.RandomState(9).randn(VOCAB)
    for _ in range(BATCH * 60):
        dense = rng.randn(DENSE).astype("float32")
        ids = rng.randint(0, VOCAB, size=SLOTS)
        click = int(dense[0] + weight[ids].sum() + 0.3 * rng.randn() > 0)
        yield [[click]] + [[i] for i in ids] + [dense]


def main():
    fleet.init(role_maker.PaddleCloudRoleMaker())
    model = Model()
    loader = paddle.io.DataLoader.from_generator(feed_list=model.inputs, capacity=64, iterable=False)
    loader.set_sample_list_generator(paddle.batch(samples, batch_size=BATCH), places=[paddle.CPUPlace()])
    model.net()
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, lazy_mode=True)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    strategy.a_sync_configs = {"k_steps": 0, "launch_barrier": False}
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(model.avg_cost)

    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    costs = []
    for epoch in range(4):
        loader.start()
        try:
            while True:
                cost, auc = exe.run(paddle.static.default_main_program(),
                                    fetch_list=[model.avg_cost.name, model.auc.name])
                costs.append(cost[0])
        except paddle.core.EOFException:
            loader.reset()
        print("epoch %d cost %f auc %f" % (epoch, cost, auc))
        if epoch < 3:
            reset_auc(model.auc_states)
    print("first=%f last=%f auc=%f" % (np.mean(costs[:5]), np.mean(costs[-10:]), auc))
    print("first_worker=%d workers=%d" % (fleet.is_first_worker(), fleet.worker_num()))
    fleet.stop_worker()


def reset_auc(states):
    scope = paddle.static.global_scope()
    for state in states:
        tensor = scope.find_var(state.name).get_tensor()
        tensor.set(np.zeros(tensor._get_dims()).astype("int64"), paddle.CPUPlace())


if __name__ == "__main__":
    main()
