"""The listings of the guides train as jobs: by mpirun, by the guide's own command, as one mpirun of several parts.

Names that a guide leaves to its reader (a network, a reader, who one is) are supplied around the listing.
"""

import re
import textwrap

import pytest

from tests.mpi.guides import SUPPLIED_000, are_here, listings
from tests.mpi.jobs import run_job

pytestmark = are_here


def write(folder, *parts, **modules):
    """The parts as one script, and modules of its own beside it; gives the script's path."""
    for name, code in {"train": "\n".join(map(textwrap.dedent, parts)), **modules}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(code))
    return folder / "train.py"


def indented(code):
    """Code for the inside of a branch."""
    return textwrap.indent(code, "    ")


# ---------------------------------------------------------------------- 000: fleet 1.x without a role maker


@pytest.mark.parametrize("how", ("plain", "unchanged"))
def test_seed_000_prints_loss_and_auc_of_every_worker(tmp_path, how):
    importing, _, minimizing, training = listings("000")
    # Plain python does not know paddle's names; these two lines, or ``python -m fleet_mpi``, teach it.
    known = "from fleet_mpi.paddle.standing_in import stand_in\nstand_in()" if how == "plain" else ""
    path = write(tmp_path, known, importing, SUPPLIED_000, minimizing, training)
    ended = run_job(4, [path] if how == "plain" else ["-m", "fleet_mpi", path])
    assert ended.code == 0, ended.story()
    line = re.compile(r"Pass \d, cost = \d\.\d+, auc = [01]\.\d+, batch_auc = [01]\.\d+")
    # Even ranks serve.
    assert [len(line.findall(rank.out)) for rank in ended.ranks] == [0, 20, 0, 20], ended.story()


# ---------------------------------------------------------------------- 001: fleet 2.x, three modes

MODEL_001 = """
    import __main__
    import paddle.fluid as fluid
    from fleet_mpi.examples.wide_and_deep import network

    def net():
        global loss
        built = network(table_rows=2000)
        __main__.reader = fluid.io.PyReader(feed_list=built.feeds, capacity=8, iterable=False)
        loss = built.loss
        return built.feeds, built.prediction, built.loss
    """
READER_001 = """
    from fleet_mpi.data.sets import ctr

    def data_reader():
        return ctr.reader(hash_dim=2000, synthetic_count=120)
    """


def strategies():
    """{mode: the listing that chooses it}: the guide shows three choices before one optimizer."""
    asynchronous, sync, geo = re.split(r"^(?=dist_strategy = fleet\.Dist)", listings("001")[3], flags=re.M)[1:]
    geo, optimizer = re.split(r"^(?=optimizer = paddle)", geo, maxsplit=1, flags=re.M)
    return {"sync": sync + optimizer, "async": asynchronous + optimizer, "geo": geo + optimizer}


@pytest.mark.parametrize("mode", ("sync", "async", "geo"))
def test_seed_001_trains_wide_and_deep_by_the_guides_command(tmp_path, mode):
    importing, roles, model, _, training = listings("001")
    write(tmp_path, "import numpy as np, model", importing, roles, model, strategies()[mode], training,
          model=MODEL_001, reader=READER_001)
    ended = run_job(None, ["-m", "fleet_mpi", "-m", "paddle.distributed.launch", "--server_num=1", "--worker_num=2",
                           "train.py"], via="command", cwd=tmp_path, env={"DATA_HOME": str(tmp_path)})
    assert ended.code == 0, ended.story()
    losses = [float(loss) for loss in re.findall(r"TRAIN ---> pass: 0 loss: (\d\.\d+)\n", ended.out)]
    assert len(losses) == 2 * 30, ended.story()


# ---------------------------------------------------------------------- 002: the transpiler's oldest form

SUPPLIED_002 = """
    import os
    import paddle.v2 as paddle, paddle.fluid as fluid
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.data(name="y", shape=[1])
    avg_cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.01)
    exe = fluid.Executor(fluid.CPUPlace())
    loader = fluid.io.PyReader(feed_list=[x, y], capacity=4, iterable=False)
    loader.decorate_sample_list_generator(paddle.batch(paddle.dataset.uci_housing.train(), batch_size=100))

    def train_reader():
        loader.start()
        yield from range(5)
        loader.reset()

    port, trainers = os.environ["PADDLE_PSERVER_PORT"], int(os.environ["PADDLE_TRAINERS"])
    pserver = pserver_endpoints = ",".join(ip + ":" + port for ip in os.environ["PADDLE_PSERVER_IPS"].split(","))
    server_endpoint = current_endpoint = os.environ.get("PADDLE_CURRENT_IP", "") + ":" + port
    trainer_id, training_role = int(os.environ["PADDLE_TRAINER_ID"]), os.environ["PADDLE_TRAINING_ROLE"]
    """
TRAINING = """
exe.run(fluid.default_startup_program())
for pass_id in range(100):
    for data in train_reader():
        exe.run(t.get_trainer_program())
"""
TOLD = """
loader.start()
print("loss %f" % exe.run(t.get_trainer_program(), fetch_list=[avg_cost])[0])
loader.reset()
"""


def first_form():
    """The listing with ``transpile(optimize_ops, params_grads, pservers=, trainers=)``: each role its part."""
    common, serving, training = re.split(r"^# in (?:pserver|trainer), run this\n", listings("002")[2], flags=re.M)
    return common, f'if training_role == "PSERVER":\n{indented(serving)}\nelse:\n{indented(training + TOLD)}'


def second_form():
    """The listing with a trainer_id, which ends with the server's programs."""
    _, minimizing, _, transpiling = listings("002")
    serving = "exe.run(pserver_startup)\nexe.run(pserver_prog)\n"
    return minimizing, f"{transpiling}{indented(serving)}else:\n{indented(TRAINING + TOLD)}"


@pytest.mark.parametrize("form", (first_form, second_form))
def test_seed_002_trains_as_one_mpirun_of_three_parts(tmp_path, form):
    words = ["-m", "fleet_mpi", write(tmp_path, SUPPLIED_002, *form())]
    told = {"PADDLE_PSERVER_PORT": "6174", "PADDLE_PSERVER_IPS": "192.168.1.2", "PADDLE_TRAINERS": "2",
            "PADDLE_TRAINER_ID": "1", "DATA_HOME": str(tmp_path), "FLEET_MPI_SEED": "3"}
    server = {"PADDLE_CURRENT_IP": "192.168.1.2", "PADDLE_TRAINING_ROLE": "PSERVER"}
    workers = [{"PADDLE_TRAINER_ID": str(number), "PADDLE_TRAINING_ROLE": "TRAINER"} for number in (0, 1)]
    ended = run_job(1, words, env={**told, **server}, mpmd=[(1, words, worker) for worker in workers])
    assert ended.code == 0, ended.story()
    assert "Server listening on 192.168.1.2:6174" in ended.ranks[0].err, ended.story()
    losses = [float(re.search(r"loss (\S+)", rank.out)[1]) for rank in ended.ranks[1:]]
    assert max(losses) < 100, ended.story()


# ---------------------------------------------------------------------- 004: two servers, parameters cut or whole

SUPPLIED_004 = """
    import hashlib, sys
    import numpy as np, paddle.fluid as fluid
    role, trainer_id = sys.argv[1], 0
    x = fluid.layers.data(name="x", shape=[13])
    y = fluid.layers.data(name="y", shape=[1])
    hidden = fluid.layers.fc(x, 2000, act="relu")
    cost = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    fluid.optimizer.Momentum(0.001, 0.9).minimize(cost)
    main_program = fluid.default_main_program()
    """
ROLES_004 = """
    exe = fluid.Executor(fluid.CPUPlace())
    if role.startswith("192"):
        serving = t.get_pserver_program(role)
        exe.run(t.get_startup_program(role, serving))
        exe.run(serving)
    else:
        program = t.get_trainer_program() if role == "TRAINER" else main_program
        exe.run(fluid.default_startup_program())
        draw = np.random.RandomState(0)
        for _ in range(5):
            rows = draw.normal(size=(20, 13)).astype("float32")
            exe.run(program, feed={"x": rows, "y": rows.sum(1, keepdims=True)})
        values = [np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in main_program.all_parameters()]
        print("sha", hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest())
    """


def test_seed_004_gives_the_bits_of_one_process_with_parameters_cut_or_whole(tmp_path):
    listing, env = listings("004")[0], {"FLEET_MPI_SEED": "5"}
    assert "config.slice_var_up = False" in listing
    servers = ["192.168.0.1:6174", "192.168.0.2:6174"]
    found = {}
    for sliced in (False, True):
        said = listing.replace("slice_var_up = False", f"slice_var_up = {sliced}")
        words = ["-m", "fleet_mpi", write(tmp_path, SUPPLIED_004, said, ROLES_004)]
        ended = run_job(1, [*words, servers[0]], env=env,
                        mpmd=[(1, [*words, role], {}) for role in (servers[1], "TRAINER")])
        assert ended.code == 0, ended.story()
        found[sliced], = re.findall(r"^sha (\w+)$", ended.out, re.M)
    alone = run_job(None, ["-m", "fleet_mpi", write(tmp_path, SUPPLIED_004, ROLES_004), "ALONE"], env=env,
                    via="command")
    found["alone"], = re.findall(r"^sha (\w+)$", alone.out, re.M) or [alone.story()]
    assert len(set(found.values())) == 1, found
