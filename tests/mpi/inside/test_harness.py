"""Ranks really meet, and share what pytest gives them."""

import os

import pytest


@pytest.fixture
def world():
    """mpi4py's world."""
    from mpi4py import MPI
    return MPI.COMM_WORLD


@pytest.mark.mpi(min_size=2)
def test_the_ranks_are_one_world(world):
    assert world.size == int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ["PMI_SIZE"]) > 1
    assert world.allgather(world.rank) == list(range(world.size))


@pytest.mark.mpi(min_size=2)
def test_ranks_share_a_folder_and_have_one_of_their_own(world, mpi_tmp_path, tmp_path):
    (mpi_tmp_path / f"from{world.rank}").touch()
    world.Barrier()
    assert sorted(path.name for path in mpi_tmp_path.iterdir()) == [f"from{rank}" for rank in range(world.size)]
    assert len(set(world.allgather(str(tmp_path)))) == world.size


@pytest.mark.mpi(min_size=3, max_size=4)
def test_a_test_may_limit_the_number_of_ranks(world):
    assert world.size in (3, 4)
