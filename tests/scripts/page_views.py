"""Clicks of whole page views: an InMemoryDataset that merges by search id, and one that merges lines of one id."""

import os
import tempfile

import numpy as np
import paddle.fluid as fluid

folder = tempfile.mkdtemp()
rng = np.random.RandomState(3)


def log_key(search, rank):
    return "%011x%03x%02x%016x" % (0, 222, rank, search)


with open(os.path.join(folder, "views"), "w") as views, open(os.path.join(folder, "lines"), "w") as lines:
    for search in range(1, 101):
        for rank in range(1, rng.randint(2, 5)):
            item = rng.randint(1, 40)
            click = int(item % 2 == 1)
            views.write("1 %s 1 %d 1 %d\n" % (log_key(search, rank), item, click))
        lines.write("1 id%d 1 %d 1 0\n" % (search, search))           # the item comes from one log,
        lines.write("1 id%d 1 0 1 %d\n" % (search, search % 2))       # its click from another
        if search % 10 == 0:
            lines.write("1 lost%d 1 5 1 1\n" % search)

item = fluid.layers.data(name="item", shape=[1], dtype="int64", lod_level=1)
click = fluid.layers.data(name="click", shape=[1], dtype="int64")
offset = fluid.data(name="rank_offset", shape=[None, 7], dtype="int32")
embedding = fluid.layers.embedding(input=item, size=[200, 8])
predict = fluid.layers.fc(input=fluid.layers.sequence_pool(embedding, "sum"), size=2, act="softmax")
cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=click))
first_places = fluid.layers.reduce_sum(fluid.layers.cast(fluid.layers.equal(
    fluid.layers.slice(offset, axes=[1], starts=[0], ends=[1]), fluid.layers.fill_constant([1], "int32", 1)),
                                                         "float32"))
fluid.optimizer.Adam(learning_rate=0.05).minimize(cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())

dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_use_var([item, click])
dataset.set_filelist([os.path.join(folder, "views")])
dataset.set_feed_type("PaddleBoxDataFeed")
dataset.set_parse_logkey(True)
dataset.set_merge_by_sid(True)
dataset.set_enable_pv_merge(True)
dataset.set_rank_offset("rank_offset")
dataset.set_pv_batch_size(20)
dataset.set_batch_size(50)
dataset.load_into_memory()
costs, places = [], 0.0
for epoch in range(8):
    dataset.set_current_phase(1)
    dataset.preprocess_instance()
    for feed in fluid.io.DataLoader.from_dataset(dataset, drop_last=False)():
        value, firsts = exe.run(feed=feed, fetch_list=[cost, first_places])
        costs.append(value[0])
        places += firsts[0] if epoch == 0 else 0
    views = dataset.get_pv_data_size()
    dataset.postprocess_instance()
print("views=%d first_places=%d first=%f last=%f" % (views, places, costs[0], costs[-1]))

merged = fluid.DatasetFactory().create_dataset("InMemoryDataset")
merged.set_use_var([item, click])
merged.set_filelist([os.path.join(folder, "lines")])
merged.set_merge_by_lineid(2)
merged.set_batch_size(100)
merged.load_into_memory()
before = merged.get_memory_data_size()
merged.global_shuffle()
((feed,),) = fluid.io.DataLoader.from_dataset(merged)()
right = (np.array(feed["item"])[:, 0] % 2 == np.array(feed["click"])[:, 0]).sum()
print("before=%d after=%d right=%d" % (before, merged.get_memory_data_size(), right))
