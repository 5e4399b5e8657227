"""Fleet over real ranks: files by worker, datasets, inference with rows on servers, metrics, saving and loading."""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import ROOT, run_job

CLICKS = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "tests" / "scripts")!r})
import numpy as np
import paddle, paddle.fluid as fluid
import paddle.distributed.fleet as fleet
from ctr_dataset import HERE, dataset_of, net
from paddle.distributed.fleet.utils.ps_util import DistributedInfer

FAR = int(os.environ["FAR"])   # above 1 the tables have a row for any id
if FAR > 1:
    def growing(input, size, param_attr, **more):
        return fluid.contrib.layers.sparse_embedding(input, [10, size[1]], param_attr=param_attr)
    fluid.layers.embedding = growing
ROWS = [([3, 90], [1], [1]), ([5], [2, 4], [0]), ([700, 3], [9], [1]), ([900], [1], [0]), ([12], [7], [0])]
ROWS = [([one * FAR for one in deep], [one * FAR for one in wide], label) for deep, wide, label in ROWS]

def predictions(exe, program, datas, predict, rows):
    feeder = fluid.DataFeeder(feed_list=datas, program=program)
    return exe.run(program, feed=feeder.feed(rows), fetch_list=[predict])[0][:, 1]
"""

TRAINING = CLICKS + """
fleet.init()
datas, loss, *_ = net()
fleet.distributed_optimizer(paddle.optimizer.Adam(0.005), fleet.DistributedStrategy()).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
fleet.init_worker()
files = fleet.util.get_file_shard(sys.argv[2:])
print("files", fleet.worker_index(), *(name[-1] for name in files))
for _ in range(2):
    exe.train_from_dataset(fluid.default_main_program(), dataset_of(datas, files))
memory = fluid.DatasetFactory().create_dataset("InMemoryDataset")
memory.set_use_var(datas)
memory.set_pipe_command("python " + HERE + "/ctr_reader.py")
memory.set_batch_size(50)
memory.set_filelist(files)
memory.load_into_memory()
before = memory.get_memory_data_size()
memory.global_shuffle(fleet)
assert memory.get_memory_data_size(fleet) == 200 * len(sys.argv[2:]) and memory.get_memory_data_size() != before
exe.train_from_dataset(fluid.default_main_program(), memory)
fleet.barrier_worker()
fleet.save_persistables(exe, sys.argv[1])

main, startup = fluid.Program(), fluid.Program()
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    datas, loss, predict, *_, states = net()
infer = DistributedInfer(main_program=main, startup_program=startup)
infer.init_distributed_infer_env(exe, loss)
program = infer.get_dist_infer_program()
assert [op.type for op in program.global_block().ops].count("distributed_lookup_table") == 1
for state in states:
    tensor = fluid.global_scope().find_var(state.name).get_tensor()
    tensor.set(np.zeros(tensor._get_dims(), "int64"), fluid.CPUPlace())
mine = ROWS[fleet.worker_index()::fleet.worker_num()]
found = predictions(exe, program, datas, predict, mine)

# What one process would say of the samples of all workers.
pairs = sum(fleet.util.all_gather([[int(p * 4096), row[2][0]] for p, row in zip(found, mine)]), [])
clicks, others = ([bucket for bucket, label in pairs if label == wanted] for wanted in (1, 0))
right = sum((one > other) + (one == other) / 2 for one in clicks for other in others)
together = fleet.metrics.auc(states[2], states[3])
assert abs(together - right / len(clicks) / len(others)) < 1e-9, (together, pairs)
assert fleet.metrics.sum(np.array([len(mine)])).tolist() == [len(ROWS)]
fleet.barrier_worker()
if FAR > 1:   # every row is unseen since the first call when the second one comes
    print("went", [fleet.shrink(2) for _ in range(2)])
fleet.stop_worker()
print("auc", together)
"""

# Nothing is trained here: the servers are started by the inference itself, from the folder.
LOADING = CLICKS + """
datas, loss, predict, *_ = net()
exe = fluid.Executor(fluid.CPUPlace())
infer = DistributedInfer()
infer.init_distributed_infer_env(exe, loss, dirname=sys.argv[1])
if fleet.is_worker():
    print("found", *predictions(exe, infer.get_dist_infer_program(), datas, predict, ROWS).tolist())
    fleet.stop_worker()
"""

ALONE = CLICKS + """
datas, loss, predict, *_ = net()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
fluid.io.load_persistables(exe, sys.argv[1])
print("found", *predictions(exe, fluid.default_main_program(), datas, predict, ROWS).tolist())
"""


@pytest.fixture
def script(tmp_path):
    """Write a script; gives the words that run it."""
    def write(text):
        path = tmp_path / f"script{len(list(tmp_path.glob('*.py')))}.py"
        path.write_text(text)
        return ["-m", "fleet_mpi", str(path)]
    return write


@pytest.mark.parametrize("far", (1, 10 ** 15), ids=("fixed", "growing"))
def test_workers_train_from_their_files_and_look_at_what_they_trained(tmp_path, script, far):
    files, env = [str(tmp_path / f"part-{number}") for number in range(3)], {"FAR": str(far)}
    for number, name in enumerate(files):
        Path(name).write_text("".join(f"{i % 2}\t{(i % 2 * 500 + i) * far},{number * far}\t{i * far}\n"
                                      for i in range(200)))
    ended = run_job(4, [*script(TRAINING), tmp_path / "saved", *files], env=env)
    assert ended.code == 0, ended.story()
    # Contiguous parts, the first longer.
    assert {line for line in ended.out.splitlines() if line.startswith("files")} == {"files 0 0 1", "files 1 2"}
    assert len(set(re.findall(r"^auc \S+$", ended.out, re.M))) == 1, ended.story()

    if far > 1:
        assert sorted(re.findall(r"^went .*$", ended.out, re.M)) == ["went [0, 0]", f"went [0, {_ids(200)}]"]

    loaded = run_job(3, [*script(LOADING), tmp_path / "saved"], env={**env, "FLEET_MPI_SERVERS": "2"})
    alone = run_job(None, [*script(ALONE), tmp_path / "saved"], via="command", env=env)
    found = [re.findall(r"^found (.*)$", one.out, re.M) for one in (loaded, alone)]
    assert found[0] == found[1] and len(found[0]) == 1, loaded.story() + alone.story()


def _ids(samples):
    """How many rows the tables of the files have: deep ids, then wide ones."""
    deep = {i % 2 * 500 + i for i in range(samples)} | {0, 1, 2}
    return len(deep) + samples


MODEL = """
import os, sys
import numpy as np, paddle.fluid as fluid
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

fleet.init()
x, y = fluid.layers.data(name="x", shape=[10]), fluid.layers.data(name="y", shape=[1])
ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
rows = fluid.layers.embedding(ids, [3000, 8], is_sparse=True, param_attr=fluid.ParamAttr(name="table"))
hidden = fluid.layers.dropout(fluid.layers.batch_norm(fluid.layers.fc([x, rows], 2000, act="relu")), 0.2)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
optimizer = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.5))
config = fluid.DistributeTranspilerConfig()
config.split_method = os.environ.get("SPLIT", "RoundRobin")
fleet.distributed_optimizer(optimizer, config).minimize(loss)
exe = fluid.Executor()

def train(steps, draw):
    for _ in range(steps):
        rows = draw.normal(size=(16, 10)).astype("float32")
        exe.run(fleet.main_program, feed={"x": rows, "y": rows.sum(1, keepdims=True),
                                          "ids": draw.randint(0, 3000, size=(16, 1))})
"""

SAVING = MODEL + """
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    fleet.init_worker()
    exe.run(fleet.startup_program)
    train(4, np.random.RandomState(fleet.worker_index()))
    fleet.save_persistables(exe, sys.argv[1])
    fleet.stop_worker()
"""

GOING_ON = MODEL + """
folder = sys.argv[1]
if fleet.is_server():
    fleet.init_server(folder)
    fleet.run_server()
else:
    fleet.init_worker()
    exe.run(fleet.startup_program)
    if not fleet.server_num():
        fluid.io.load_persistables(exe, folder, fleet.main_program)
    from fleet_mpi.program.engine.randomness import runs_of
    print("runs", runs_of(fleet.main_program, fluid.global_scope()))
    fleet.save_persistables(exe, sys.argv[2])
    train(2, np.random.RandomState(7))
    fleet.save_persistables(exe, sys.argv[3])
    fleet.stop_worker()
"""


def contents(folder):
    """{name: bytes} of the files of a folder, but for the manifest, in which saves have numbers."""
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_saved_by_2_servers_loaded_by_3_and_by_one_process_the_bits_are_the_same(tmp_path, script):
    saved = run_job(4, [*script(SAVING), tmp_path / "two"])
    assert saved.code == 0, saved.story()
    words = script(GOING_ON)
    three = run_job(4, [*words, tmp_path / "two", tmp_path / "three", tmp_path / "three on"],
                    env={"FLEET_MPI_SERVERS": "3", "SPLIT": "HashName"})
    assert three.code == 0, three.story()
    alone = run_job(None, [*words, tmp_path / "two", tmp_path / "alone", tmp_path / "alone on"], via="command")
    assert alone.code == 0, alone.story()
    assert "runs 4\n" in three.out and "runs 4\n" in alone.out, "dropout goes on where it was"
    two = contents(tmp_path / "two")
    assert {"table", "table_moment1_0", "fc_0.w_0", "fc_0.w_0_beta1_pow_acc_0", "batch_norm_0.w_1",
            "@LR_DECAY_COUNTER@"} <= set(two)
    assert contents(tmp_path / "three") == two and contents(tmp_path / "alone") == two
    # And what follows is the same training.
    went_on = contents(tmp_path / "three on")
    assert went_on == contents(tmp_path / "alone on") and went_on["fc_0.w_0"] != two["fc_0.w_0"]


TRANSPILED = """
import os, sys
import numpy as np, paddle, paddle.fluid as fluid

role, number, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
x, y = fluid.layers.data(name="x", shape=[13]), fluid.layers.data(name="y", shape=[1])
guess = fluid.layers.fc(fluid.layers.batch_norm(fluid.layers.fc(x, 2000, act="relu")), 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, y))
fluid.optimizer.Adam(0.001).minimize(loss)
transpiler, servers = fluid.DistributeTranspiler(), ["a:1", "b:1"]
transpiler.transpile(number, pservers=",".join(servers), trainers=2)
exe = fluid.Executor(fluid.CPUPlace())
if role == "PSERVER":
    program, startup = transpiler.get_pserver_programs(servers[number])
    exe.run(startup)
    exe.run(program)
else:
    program, draw = transpiler.get_trainer_program(), np.random.RandomState(number)
    exe.run(fluid.default_startup_program())
    # Every worker saves and loads before each pass, as the oldest guide does.
    for _ in range(3):
        fluid.io.save_persistables(exe, folder)
        fluid.io.load_persistables(exe, folder)
        for _ in range(2):
            rows = draw.normal(size=(20, 13)).astype("float32")
            exe.run(program, feed={"x": rows, "y": rows.sum(1, keepdims=True)})
    fluid.io.save_inference_model(os.path.join(folder, "model"), ["x"], [guess], exe)
    own = os.path.join(folder, "of_%d" % number)
    fluid.io.save_inference_model(own, ["x"], [guess], exe, params_filename="all")
    values = paddle.static.serialize_persistables([x], [guess], exe)
    assert values == paddle.static.load_from_file(os.path.join(own, "all")) and len(values) > 13 * 2000 * 4
    assert paddle.static.serialize_program([x], [guess]) == paddle.static.load_from_file(os.path.join(own, "__model__"))
    exe.close()
    try:
        exe.run(program, feed={"x": rows, "y": rows})
    except Exception as error:
        print("refused", error)
"""


def test_a_transpiled_worker_saves_all_there_is_and_closes_with_a_goodbye(tmp_path, script):
    words, folder = script(TRANSPILED), tmp_path / "saved"
    parts = [(1, [*words, role, number, folder], {}) for role, number in
             (("PSERVER", 1), ("TRAINER", 0), ("TRAINER", 1))]
    ended = run_job(1, [*words, "PSERVER", 0, folder], mpmd=parts)
    assert ended.code == 0, ended.story()
    assert ended.out.count("refused this worker has said goodbye to the servers") == 2, ended.story()
    assert {"fc_0.w_0", "fc_0.w_0_moment2_0", "batch_norm_0.w_1", "learning_rate_0", "model"} <= {
        path.name for path in folder.iterdir()}
    reading = f"import paddle.fluid as f; print(f.io.load_inference_model({str(folder / 'model')!r}, f.Executor())[1])"
    alone = run_job(None, script(reading), via="command")
    assert alone.out.strip() == "['x']", alone.story()
