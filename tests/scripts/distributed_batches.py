"""Equal workers that share a dataset out by DistributedBatchSampler, each with loader processes; alone it has all
samples."""

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
from paddle.io import DataLoader, Dataset, DistributedBatchSampler

paddle.enable_static()
fleet.init(is_collective=True)


class Line(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, idx):
        x = np.random.RandomState(idx).rand(4).astype("float32")
        return x, x.sum(keepdims=True) * 2, np.array([idx], "int64")


x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
number = paddle.static.data(name="number", shape=[None, 1], dtype="int64")
paddle.static.default_startup_program().random_seed = 6
loss = paddle.mean(paddle.fluid.layers.square_error_cost(paddle.static.nn.fc(x, 1), y))
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.2)).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())

sampler = DistributedBatchSampler(Line(), batch_size=10, shuffle=True)
loader = DataLoader(Line(), feed_list=[x, y, number], return_list=False, batch_sampler=sampler, num_workers=2)
costs, seen = [], []
for epoch in range(6):
    sampler.set_epoch(epoch)
    for batch in loader():
        value, numbers = exe.run(feed=batch, fetch_list=[loss, number])
        costs.append(float(value.reshape(-1)[0]))
        seen += numbers.ravel().tolist() if epoch == 0 else []
print("worker=%d of=%d batches=%d first=%f last=%f seen %s" % (
    sampler.local_rank, sampler.nranks, len(sampler), costs[0], costs[-1], sorted(seen)))
