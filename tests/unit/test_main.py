"""``python -m fleet_mpi``: scripts run unchanged, and what goes wrong is a sentence and an exit code."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """Run a script's text, or a command line, in a folder of its own."""
    def run(code="", *arguments, files=None, **variables):
        for name, text in {"script.py": code, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        environment = {"PATH": "", "PYTHONPATH": str(ROOT), "DATA_HOME": str(tmp_path), "FLEET_MPI_SEED": "1",
                       **variables}
        return subprocess.run([sys.executable, "-m", "fleet_mpi", *(arguments or ["script.py"])], cwd=tmp_path,
                              capture_output=True, text=True, timeout=120, env=environment)
    return run


def test_a_script_of_1x_trains_saves_and_loads(run, tmp_path):
    ended = run("""
        import paddle.v2 as paddle
        import paddle.fluid as fluid

        features = fluid.layers.data(name="features", shape=[13], dtype="float32")
        price = fluid.layers.data(name="price", shape=[1], dtype="float32")
        guess = fluid.layers.fc(input=features, size=1, act=None)
        loss = fluid.layers.mean(x=fluid.layers.square_error_cost(input=guess, label=price))
        fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)

        batches = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
        place = fluid.CPUPlace()
        feeder = fluid.DataFeeder(place=place, feed_list=[features, price])
        exe = fluid.Executor(place)
        exe.run(fluid.default_startup_program())
        for number in range(30):
            fluid.io.save_persistables(exe, "./kept/")
            fluid.io.load_persistables(exe, "./kept/")
            for batch in batches():
                value, = exe.run(fluid.default_main_program(), feed=feeder.feed(batch), fetch_list=[loss])
                if value[0] < 30.0:
                    print("loss %.3f" % value)
                    exit(0)
        exit(1)
        """)
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(r"loss \d+\.\d{3}\n", ended.stdout)
    assert sorted(path.name for path in (tmp_path / "kept").glob("[!.]*")) == ["fc_0.b_0", "fc_0.w_0",
                                                                               "learning_rate_0"]


def test_a_script_of_2x_trains_with_fleet(run):
    ended = run("""
        import numpy as np
        import paddle
        import paddle.distributed.fleet as fleet

        paddle.enable_static()
        fleet.init(is_collective=True)
        x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
        y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
        model = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
        loss = paddle.nn.functional.cross_entropy(model(x), y)
        optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.05), fleet.DistributedStrategy())
        optimizer.minimize(loss)
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(paddle.static.default_startup_program())
        rows = np.random.RandomState(0).rand(64, 4).astype("float32")
        feed = {"x": rows, "y": (rows.sum(1, keepdims=True) > 2).astype("int64")}
        losses = [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(40)]
        print(bool(losses[-1] < 0.7 * losses[0]), fleet.worker_num(), fleet.is_first_worker())
        """)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("True 1 True\n", "", 0)


def test_the_script_gets_its_arguments_and_its_folder(run):
    ended = run("", "below/script.py", "--epochs", "3", files={
        "below/script.py": "import sys, beside\nprint(sys.argv[1:], beside.WORD, __name__)",
        "below/beside.py": "WORD = 'found'"})
    assert (ended.stdout, ended.returncode) == ("['--epochs', '3'] found __main__\n", 0)


def test_a_module_runs_by_name(run):
    ended = run("", "-m", "below.train", "5", files={
        "below/__init__.py": "", "below/train.py": "import sys, paddle\nprint(sys.argv[1:], paddle.in_dynamic_mode())"})
    assert (ended.stdout, ended.returncode) == ("['5'] False\n", 0)


def test_the_exit_code_of_the_script_is_kept(run):
    assert run("import sys; sys.exit(23)").returncode == 23


def test_a_missing_script_is_a_sentence(run):
    ended = run("", "nowhere.py")
    assert ended.returncode == 2
    assert ended.stderr.startswith("fleet_mpi: FileProblem: no script 'nowhere.py' (in /")


def test_a_missing_module_name_is_a_sentence(run):
    ended = run("", "-m")
    assert (ended.returncode, ended.stderr) == (
        2, "fleet_mpi: FileProblem: -m needs a module name; python -m fleet_mpi --help\n")


def test_help_is_output_and_its_lack_of_arguments_an_error(run):
    asked, not_asked = run("", "--help"), subprocess.run([sys.executable, "-m", "fleet_mpi"], cwd=ROOT,
                                                         capture_output=True, text=True, timeout=60)
    assert asked.returncode == 0 and "usage: python -m fleet_mpi SCRIPT.py" in asked.stdout and not asked.stderr
    assert not_asked.returncode == 2 and "usage:" in not_asked.stderr and not not_asked.stdout


def test_an_error_shows_the_scripts_own_lines_and_gives_the_exit_code(run):
    ended = run("""
        import paddle.fluid as fluid
        def build():
            fluid.io.load_persistables(fluid.Executor(), "nowhere", filename="all")
        fluid.layers.fc(fluid.layers.data(name="x", shape=[3]), 2)
        build()
        """)
    assert ended.returncode == 2
    first, *_, last = ended.stderr.splitlines()
    assert first == "Traceback (the script's own lines):"
    assert 'script.py", line 4, in build' in ended.stderr and "variables.py" not in ended.stderr
    assert last.startswith("fleet_mpi: CheckpointMissing: 'nowhere': no such folder")


def test_an_error_of_the_script_itself_stays_as_it_is(run):
    ended = run("import paddle\nraise KeyError('mine')")
    assert ended.returncode == 1
    assert ended.stderr.startswith("Traceback (most recent call last)") and ended.stderr.endswith("KeyError: 'mine'\n")


def test_an_error_of_python_shows_the_scripts_own_lines_only(run):
    ended = run("""
        import paddle.fluid as fluid
        def build():
            try:
                fluid.layers.data(3, [4]).no_such_thing
            except Exception as error:
                raise KeyError("mine") from error
        build()
        """)
    assert ended.returncode == 1 and ended.stderr.endswith("KeyError: 'mine'\n"), ended.stderr
    files = re.findall(r'File "([^"]*)"', ended.stderr)
    assert {name.rpartition("/")[2] for name in files} == {"script.py"} and len(files) == 3, ended.stderr
    assert "The above exception was the direct cause" in ended.stderr


@pytest.mark.parametrize("first", (
    "", "import fleet_mpi.fluid; from fleet_mpi.ranks import cluster; cluster.guard(); "))
def test_an_error_of_python_in_a_rank_ends_the_job_with_its_sentence(run, first):
    ended = run(first + "raise KeyError('mine')", PMI_RANK="1", PMI_SIZE="2")
    assert ended.returncode == 1 and ended.stderr.count("File ") == 1, ended.stderr
    assert re.search(r"KeyError: 'mine'\nfleet_mpi: rank 1 \(host \S+\): KeyError: 'mine'\n$",
                     ended.stderr), ended.stderr


def test_a_syntax_error_shows_its_line(run):
    ended = run("import paddle\nif :")
    assert ended.returncode == 1 and re.search(r'File "\S*script.py", line 2\n    if :\n', ended.stderr), ended.stderr
    assert ended.stderr.count("File ") == 1 and "SyntaxError" in ended.stderr


def test_all_lines_are_shown_where_that_is_asked_for(run):
    ended = run("import os, paddle\n1 / 0", FLEET_MPI_LOG="debug")
    assert "fleet_mpi/__main__.py" in ended.stderr and ended.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_a_failed_import_of_another_package_stays_as_it_is(run):
    ended = run("import no_such_package")
    assert ended.returncode == 1 and ended.stderr.endswith("No module named 'no_such_package'\n")


def test_an_installed_paddle_is_shadowed_with_one_line(run):
    ended = run("import paddle, paddle.fluid\nprint(paddle.fluid.__name__)", files={
        "paddle/__init__.py": "raise SystemExit('the other paddle')"})
    assert (ended.stdout, ended.returncode) == ("fleet_mpi.fluid\n", 0)
    assert ended.stderr == ("fleet_mpi: a paddle is installed in this environment; fleet_mpi's names are used instead "
                            "of it\n")


@pytest.mark.parametrize("line, said", (
    ("import paddle.fluid as fluid; fluid.layers.fcc",
     "paddle.fluid.layers has no 'fcc' (or not yet); did you mean 'fc'"),
    ("from paddle.fluid import Excutor", "paddle.fluid has no 'Excutor' (or not yet); did you mean 'Executor'"),
    ("from paddle.static.nn import conv_2d", "paddle.static.nn has no 'conv_2d' (or not yet); did you mean 'conv2d'"),
    ("import paddle.fluid.layrs", "no module that stands for 'paddle.fluid.layrs' (or not yet); did you mean 'layers'"),
    ("import paddle.distributed.fleet as fleet; fleet.innit",
     "paddle.distributed.fleet has no 'innit' (or not yet); did you mean 'init'"),
), ids=("attribute", "imported name", "of a submodule", "module", "function of fleet"))
def test_an_unknown_name_says_the_nearest(run, line, said):
    ended = run(line)
    assert ended.returncode == 1
    assert said in ended.stderr.splitlines()[-1]
