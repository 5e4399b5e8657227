"""A click model in the manner of dist_fleet_ctr: two ragged slots, a deep and a wide part, files through a pipe."""

import os
import tempfile

import numpy as np
import paddle.fluid as fluid

DNN_DIM, LR_DIM = 1000, 1000
HERE = os.path.dirname(os.path.abspath(__file__))


def write_files(folder, count=2, lines=1000):
    """Clicks are more likely where ids of the first slot are small."""
    rng = np.random.RandomState(3)
    names = []
    for number in range(count):
        names.append(os.path.join(folder, "part-%d" % number))
        with open(names[-1], "w") as out:
            for _ in range(lines):
                click = rng.randint(2)
                top = 200 if click else DNN_DIM
                dnn = rng.randint(0, top, size=rng.randint(1, 6))
                lr = rng.randint(0, LR_DIM, size=rng.randint(1, 4))
                out.write("%d\t%s\t%s\n" % (click, ",".join(map(str, dnn)), ",".join(map(str, lr))))
    return names


def net():
    dnn_data = fluid.layers.data(name="dnn_data", shape=[-1, 1], dtype="int64", lod_level=1, append_batch_size=False)
    lr_data = fluid.layers.data(name="lr_data", shape=[-1, 1], dtype="int64", lod_level=1, append_batch_size=False)
    label = fluid.layers.data(name="click", shape=[-1, 1], dtype="int64", lod_level=0, append_batch_size=False)
    datas = [dnn_data, lr_data, label]

    dnn_embedding = fluid.layers.embedding(
        is_distributed=False, input=dnn_data, size=[DNN_DIM, 16], is_sparse=True,
        param_attr=fluid.ParamAttr(name="deep_embedding", initializer=fluid.initializer.Constant(value=0.01)))
    dnn_out = fluid.layers.sequence_pool(input=dnn_embedding, pool_type="sum")
    for i, dim in enumerate([32, 32, 16]):
        dnn_out = fluid.layers.fc(input=dnn_out, size=dim, act="relu", name="dnn-fc-%d" % i,
                                  param_attr=fluid.ParamAttr(initializer=fluid.initializer.Xavier(seed=i + 1)))

    lr_embedding = fluid.layers.embedding(
        is_distributed=False, input=lr_data, size=[LR_DIM, 1], is_sparse=True,
        param_attr=fluid.ParamAttr(name="wide_embedding", initializer=fluid.initializer.Constant(value=0.01)))
    lr_pool = fluid.layers.sequence_pool(input=lr_embedding, pool_type="sum")

    merge_layer = fluid.layers.concat(input=[dnn_out, lr_pool], axis=1)
    predict = fluid.layers.fc(input=merge_layer, size=2, act="softmax")
    acc = fluid.layers.accuracy(input=predict, label=label)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=predict, label=label, num_thresholds=2 ** 12,
                                                          slide_steps=20)
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    return datas, fluid.layers.mean(x=cost), predict, acc, auc_var, batch_auc_var, auc_states


def dataset_of(exe_datas, filelist):
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(exe_datas)
    dataset.set_pipe_command("python " + os.path.join(HERE, "ctr_reader.py"))
    dataset.set_batch_size(50)
    dataset.set_thread(2)
    dataset.set_filelist(filelist)
    return dataset


def main():
    datas, avg_cost, predict, acc, auc_var, batch_auc_var, auc_states = net()
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.default_startup_program().random_seed = 1
    fluid.optimizer.Adam(learning_rate=0.005).minimize(avg_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    with tempfile.TemporaryDirectory() as folder:
        filelist = write_files(folder)
        dataset = dataset_of(datas, filelist)
        for epoch in range(3):
            exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset,
                                   fetch_list=[avg_cost, auc_var], fetch_info=["cost", "auc"],
                                   print_period=20, debug=False)
            # State of the metric lives in the scope, as the PaddleRec scripts reset it.
            for state in auc_states:
                tensor = fluid.global_scope().find_var(state.name).get_tensor()
                if epoch < 2:
                    tensor.set(np.zeros(tensor._get_dims(), dtype="int64"), fluid.CPUPlace())
        exe.infer_from_dataset(program=test_program, dataset=dataset, fetch_list=[auc_var], fetch_info=["test auc"],
                               print_period=20)

    dnn = fluid.create_lod_tensor(np.array([[3], [90], [5]], dtype="int64"), [[2, 1]], fluid.CPUPlace())
    lr = fluid.create_lod_tensor(np.array([[1], [2]], dtype="int64"), [[1, 1]], fluid.CPUPlace())
    values = exe.run(test_program, feed={"dnn_data": dnn, "lr_data": lr, "click": np.array([[1], [1]], dtype="int64")},
                     fetch_list=[auc_var, batch_auc_var, predict, acc])
    print("auc=%f batch_auc=%f click_of_small_ids=%f" % (values[0], values[1], values[2][0, 1]))
    exe.close()


if __name__ == "__main__":
    main()
