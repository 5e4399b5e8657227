"""From the words on the command line to a job: who, where, and what is refused."""

import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.launch.job import COLLECTIVE, MPI, PS, Allocation, parse


@pytest.mark.parametrize("words, kind, ranks, servers, script", (
    ("-np 4 train.py", MPI, 4, 0, "train.py"),
    ("--np=4 train.py", MPI, 4, 0, "train.py"),
    ("-n 4 train.py --epochs 3", MPI, 4, 0, "train.py --epochs 3"),
    ("-np 2 -m pkg.train -np 3", MPI, 2, 0, "-m pkg.train -np 3"),
    ("--dry-run -np 2 train.py", MPI, 2, 0, "train.py"),
    ("--server_num 1 --worker_num 2 train.py", PS, 3, 1, "train.py"),
    ("--server_num 1 --trainer_num 2 train.py", PS, 3, 1, "train.py"),
    ("--server_num=1 --worker_num=2 train.py --server_num=9", PS, 3, 1, "train.py --server_num=9"),
    ("-np 5 --server_num 2 train.py", PS, 5, 2, "train.py"),
    ("-np 3 --server_num 1 --worker_num 2 train.py", PS, 3, 1, "train.py"),
    ("--servers=127.0.0.1:6170,127.0.0.1:6171 --workers=127.0.0.1:6172 train.py", PS, 3, 2, "train.py"),
    ("--servers=localhost:6170 --trainers=127.0.0.1 train.py", PS, 2, 1, "train.py"),
    ("--servers=127.0.0.1:6170 --server_num=1 --worker_num 1 train.py", PS, 2, 1, "train.py"),
    ("--endpoints 127.0.0.1:1,127.0.0.1:2 --start_port 6170 --worker_num 2 train.py", PS, 4, 2, "train.py"),
    ("--servers=10.0.0.1:1,10.0.0.1:2 --worker_num 2 train.py", PS, 4, 2, "train.py"),
    ("--run_mode ps --server_num 1 --worker_num 1 --http_port 8080 --with_gloo 1 train.py", PS, 2, 1, "train.py"),
    ("--nproc_per_node=2 train.py", COLLECTIVE, 2, 0, "train.py"),
    ("--run_mode=collective -np 3 train.py", COLLECTIVE, 3, 0, "train.py"),
    ("--gpus=0,1,2 train.py", COLLECTIVE, 3, 0, "train.py"),
    ("--selected_gpus 0,1 train.py", COLLECTIVE, 2, 0, "train.py"),
    ("--devices 0;1 --nnodes 1 --master 10.0.0.1:99 --rank 0 --job_id x train.py", COLLECTIVE, 2, 0, "train.py"),
    ("--ips 127.0.0.1 --gpus 0,1 train.py", COLLECTIVE, 2, 0, "train.py"),
    ("--cluster_node_ips 10.0.0.7 --node_ip 10.0.0.7 --nproc_per_node 2 train.py", COLLECTIVE, 2, 0, "train.py"),
    ("--heter_workers= --heter_worker_num 0 --elastic_level -1 --gpus 0 train.py", COLLECTIVE, 1, 0, "train.py"),
))
def test_words_make_a_job_on_this_machine(words, kind, ranks, servers, script):
    job = parse(words.split(), Allocation(names=("10.0.0.1", "10.0.0.7")))
    assert (job.kind, job.ranks, job.servers, job.script) == (kind, ranks, servers, tuple(script.split()))
    assert job.hosts == () and len(job.worker_labels) in (0 if kind == MPI else ranks - servers,)


def test_ranks_come_servers_first_and_are_numbered_by_role():
    assert parse("-np 3 --server_num 1 train.py".split()).roles == [("server", 0), ("worker", 0), ("worker", 1)]
    assert parse("--gpus 0,1 train.py".split()).roles == [("worker", 0), ("worker", 1)]
    assert parse("-np 2 train.py".split()).roles == [("rank", 0), ("rank", 1)]


@pytest.mark.parametrize("words, hosts", (
    ("--ips a,b --gpus 0,1", "a a b b"),
    ("--ips b,a --sort_ip True --nproc_per_node 1", "a b"),
    ("--ips a,b -np 4", "a a b b"),
    ("--ips a,b --nnodes 2 --nproc_per_node 2 -np 4", "a a b b"),
    ("--servers a:1,b:1 --workers a,b", "a b a b"),
    ("--servers a:1 --workers a:2,b:2,b:3", "a a b b"),
))
def test_hosts_say_where_ranks_run(words, hosts):
    assert parse([*words.split(), "train.py"]).hosts == tuple(hosts.split())


def test_labels_without_a_port_get_one_by_rank():
    job = parse("--servers a:7,b:7 --workers a,b:9 train.py".split())
    assert job.server_labels == ("a:7", "b:7") and job.worker_labels == ("a:6172", "b:9")
    assert parse("--gpus 0,1 --start_port 80 train.py".split()).worker_labels == ("127.0.0.1:80", "127.0.0.1:81")
    assert parse("--gpus 0 train.py".split(), environ={"FLAGS_START_PORT": "99"}).worker_labels == ("127.0.0.1:99",)


@pytest.mark.parametrize("words, around, environ, devices", (
    ("--gpus 0,1", Allocation(), {}, "0 1"),
    ("--gpus 2,3 --ips a,b", Allocation(), {}, "2 3 2 3"),
    ("--gpus 0,1,2,3 --nproc_per_node 2", Allocation(), {}, "0,1 2,3"),
    ("--gpus 5,4", Allocation(), {"CUDA_VISIBLE_DEVICES": "4,5"}, "1 0"),
    ("--gpus 0,1", Allocation(), {"CUDA_VISIBLE_DEVICES": ""}, "0 1"),
    ("--nproc_per_node 2", Allocation(), {}, ""),
    ("--nproc_per_node 3", Allocation(gpus=("0", "1")), {}, "0 1 0"),
    ("--servers a:1 --workers a,b,b --gpus 0,1", Allocation(), {}, "0 0 1"),
    ("--server_num 1 --worker_num 2", Allocation(gpus=("0", "1")), {}, ""),
))
def test_workers_get_devices_by_their_place_on_a_host(words, around, environ, devices):
    assert parse([*words.split(), "train.py"], around, environ).devices == tuple(devices.split())


def test_counts_that_are_not_said_may_have_been_agreed_on():
    assert parse(["train.py"], unsaid=(2, 2))[:3] == (PS, 4, 2)
    assert parse(["-np", "3", "train.py"], unsaid=(2, 2))[:3] == (MPI, 3, 0)
    assert parse(["train.py"], Allocation(gpus=("0", "1")))[:3] == (COLLECTIVE, 2, 0)
    assert parse(["train.py"], Allocation(nodes=("n1", "n2"), tasks=6))[:3] == (MPI, 6, 0)


@pytest.mark.parametrize("words, log_dir, append, echo", (
    ("-np 2", "log", False, "all"),
    ("-np 2 --log_dir=here", "here", False, "all"),
    ("--server_num 1 --worker_num 1", "log", False, "all"),
    ("--server_num 1 --worker_num 1 --log_dir= --echo first", "", False, "first"),
    ("--gpus 0", "log", True, "first"),
    ("--gpus 0 --log_overwrite True --echo none", "log", False, "none"),
))
def test_where_the_output_goes(words, log_dir, append, echo):
    job = parse([*words.split(), "train.py"])
    assert (job.log_dir, job.append, job.echo) == (log_dir, append, echo)


@pytest.mark.parametrize("words, shows", (
    ("-np 2", False), ("-np 2 --print_config True", True), ("--gpus 0", True),
    ("--gpus 0 --print_config=False", False)))
def test_whether_arguments_are_shown(words, shows):
    assert parse([*words.split(), "train.py"]).shows is shows


@pytest.mark.parametrize("words, said", (
    ("train.py", "how many ranks"),
    ("--ips a,b train.py", "how many ranks"),
    ("-np 2", "no script"),
    ("-np 2 -m", "no script"),
    ("--server_num 1 train.py", "belong together"),
    ("--worker_num 1 train.py", "belong together"),
    ("--server_num 2 -np 2 train.py", "at least one server and one worker, got 2 and 0"),
    ("--server_num=0 --worker_num=2 train.py", "got 0 and 2; a job without servers is started by -np N"),
    ("-np 4 --server_num 1 --worker_num 2 train.py", "1 servers and 2 workers are 3 ranks, but 4"),
    ("--servers 127.0.0.1:1 --server_num 2 --worker_num 2 train.py", "2 servers are asked for, but 1 are listed"),
    ("--servers a:1 --workers a:1 train.py", "a:1 twice"),
    ("--servers a:1,b:1 --worker_num 2 train.py", "hosts a, b are listed for one of them"),
    ("--servers a:1 --workers b --nnodes 2 train.py", "--nnodes and --ips are of collective jobs"),
    ("--run_mode collective --server_num 1 --worker_num 1 train.py", "a collective job has no servers"),
    ("--ips a,a --gpus 0 train.py", "the same host twice"),
    ("--ips a,b --nnodes 3 --gpus 0 train.py", "--nnodes 3, but --ips lists 2 hosts"),
    ("--nnodes 2 --nproc_per_node 1 train.py", "--nnodes 2: which hosts"),
    ("--ips a,b -np 3 train.py", "-np 3 on 2 hosts: expected a multiple"),
    ("--nproc_per_node 2 -np 3 train.py", "2 ranks on each of 1 host.* but -np asks for 3"),
    ("--gpus 0,0 train.py", "the same device twice"),
    ("--gpus a train.py", "expected numbers"),
    ("--gpus 0,1,2 --nproc_per_node 2 train.py", "3 devices for 2 ranks"),
    ("--rank 1 --gpus 0 train.py", "one launcher starts the ranks of all hosts"),
))
def test_what_cannot_be_meant_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        parse(words.split())


def test_a_device_that_is_not_visible_is_refused():
    with pytest.raises(UsageError, match="7 not among CUDA_VISIBLE_DEVICES=4,5"):
        parse(["--gpus", "4,7", "train.py"], environ={"CUDA_VISIBLE_DEVICES": "4,5"})


def test_a_mode_that_is_not_built_is_refused():
    for words in ("--run_mode rpc -np 2 train.py", "--nnodes 2:4 --gpus 0 train.py"):
        with pytest.raises(NotBuilt, match="not built|cannot change its size"):
            parse(words.split())


@pytest.mark.parametrize("host, is_here", (
    ("localhost", True), ("127.0.0.1", True), ("127.0.0.9", True), ("own.name", True), ("192.0.2.1", False),
    ("a", False)))
def test_a_host_is_this_machine_by_name_or_address(host, is_here):
    assert Allocation(names=("own.name",)).is_here(host) == is_here


@pytest.mark.parametrize("words, environ", (("--start_port 99999999", {}), ("", {"FLAGS_START_PORT": "abc"})))
def test_what_is_no_port_is_refused(words, environ):
    with pytest.raises(UsageError, match="--start_port, FLAGS_START_PORT: expected a port, got"):
        parse([*words.split(), "--gpus", "0", "train.py"], environ=environ)
