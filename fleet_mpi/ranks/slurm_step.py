"""What srun tells a process of the step that it belongs to."""

from fleet_mpi import settings


def neighbours() -> tuple[str, int, int, int, int]:
    """(job, size, rank, number on this machine, count there), as ``arriving.Neighbours`` has them; no job: no step.

    The parts of a heterogeneous job count their processes apart, and may share a machine: they do not know each other.
    """
    node, counts = settings.get("SLURM_NODEID"), settings.get("SLURM_STEP_TASKS_PER_NODE")
    if settings.get("SLURM_HET_SIZE") or not 0 <= node < len(counts):
        return "", 0, -1, -1, 0
    # With the node: several may be one machine.
    job = f"slurm {settings.get('SLURM_JOB_ID')}.{settings.get('SLURM_STEP_ID')} {node}"
    return (job, settings.get("SLURM_STEP_NUM_TASKS"), settings.get("SLURM_PROCID"), settings.get("SLURM_LOCALID"),
            counts[node])
