"""fleetrun says what to do until there is a launcher."""

from fleet_mpi.launch import main


def test_the_launcher_says_which_command_to_use(capsys):
    assert main() == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "not built yet" in told.err
    assert "mpirun -np N python -m fleet_mpi train.py" in told.err
