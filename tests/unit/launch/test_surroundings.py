"""What is around: the nodes of the Slurm job that this process runs in."""

from fleet_mpi.launch.surroundings import around


def test_nodes_and_tasks_count_within_a_slurm_job_only(tmp_path):
    variables = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NTASKS": "6"}
    assert around(variables, tmp_path)[2:4] == ((), 0)
    found = around({**variables, "SLURM_JOB_ID": "7"}, tmp_path)
    assert found[2:4] == (("n1", "n2"), 6) and found.cores >= 1
