"""A step that is tried leaves no trace."""

from fleet_mpi.program.build.trial_step import run_check
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import default_main_program


def test_a_step_is_trained_apart_from_the_scripts_own_program(capsys):
    run_check()
    assert "a step was trained in this process" in capsys.readouterr().err
    assert not default_main_program().global_block().ops and global_scope().find_var("fc_0.w_0") is None
    assert unique_name.generate("fc") == "fc_0"
