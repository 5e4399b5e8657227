"""``python -m fleet_mpi names``: plain Python's ``import paddle`` finds this package, and never instead of a real
one."""

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

import fleet_mpi
from fleet_mpi.launch import names_command
from fleet_mpi.names import paddle as on_path

ROOT = Path(fleet_mpi.__file__).parents[1]
WHERE = "import paddle; print(paddle.__name__)"


class Environment:
    """A virtual environment of its own, which sees this package and its dependencies."""

    def __init__(self, folder):
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = str(folder / "bin" / "python")
        self.site = next((folder / "lib").glob("python*/site-packages"))
        (self.site / "dependencies.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
        self.file = self.site / names_command.FILE

    def run(self, *words, **variables):
        """Run this environment's Python in a folder without modules; (code, stdout, stderr)."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("PYTHON", "FLEET_MPI_", "PM"))}
        ended = subprocess.run([self.python, *words], cwd=self.site.parent, env={**kept, **variables}, timeout=120,
                               capture_output=True, text=True)
        return ended.returncode, ended.stdout, ended.stderr

    def install(self):
        """Write what ``names install`` writes."""
        self.file.write_text(f"{on_path.FOLDER}\n")

    def put_real_paddle(self):
        """Install something else that is called paddle."""
        (self.site / "paddle").mkdir()
        (self.site / "paddle" / "__init__.py").write_text("import paddle.below")
        (self.site / "paddle" / "below.py").write_text("")


@pytest.fixture
def environment(tmp_path):
    """An environment in which nothing is installed yet."""
    return Environment(tmp_path / "environment")


def test_names_are_installed_looked_at_and_removed(environment):
    names = ("-m", "fleet_mpi", "names")
    assert environment.run(*names, "status") == (1, "not installed; import paddle fails\n", "")
    code, said, _ = environment.run(*names, "install")
    assert (code, said) == (0, f"installed: {environment.file}; import paddle finds fleet_mpi in this environment\n")
    assert environment.run(*names, "status") == (0, f"installed: {environment.file}; import paddle finds fleet_mpi\n",
                                                 "")
    code, said, error = environment.run("-c", WHERE)
    assert (code, said) == (0, "fleet_mpi.paddle\n")
    assert error == f"fleet_mpi: paddle is fleet_mpi here (found in {on_path.FOLDER}; python -m fleet_mpi names)\n"
    assert environment.run(*names, "remove") == (0, f"removed: {environment.file}\n", "")
    code, _, error = environment.run("-c", WHERE)
    assert code == 1 and error.endswith("ModuleNotFoundError: No module named 'paddle'\n")


def test_modules_are_the_same_by_either_name_and_modules_run_by_name(environment):
    environment.install()
    code, said, _ = environment.run("-c", "import paddle.fluid.layers, fleet_mpi.fluid\n"
                                          "print(paddle.fluid.layers is fleet_mpi.fluid.layers)")
    assert (code, said) == (0, "True\n")
    code, said, _ = environment.run("-m", "paddle.distributed.launch", "--help")
    assert code == 0 and "--server_num" in said


def test_nothing_runs_before_paddle_is_imported(environment):
    modules = ("-c", "import sys; print(sorted(sys.modules))")
    before = environment.run(*modules)
    environment.install()
    assert environment.run(*modules) == before and before[0] == 0


def test_the_package_shadows_nothing_with_its_own_names(environment):
    environment.install()
    code, said, error = environment.run("-m", "fleet_mpi", "-m", "paddle.distributed.launch", "--help")
    assert code == 0 and "--server_num" in said and "installed" not in error


def test_an_installed_paddle_comes_first_wherever_the_names_are(environment):
    environment.install()
    environment.put_real_paddle()
    first = {"PYTHONPATH": on_path.FOLDER}  # as a user's site folder is before the system's
    for variables in ({}, first):
        assert environment.run("-c", WHERE, **variables) == (0, "paddle\n", "")
    asked = "import paddle.below, sys; print('fleet_mpi' in sys.modules)"
    assert environment.run("-c", asked, **first) == (0, "False\n", "")
    code, said, _ = environment.run("-m", "fleet_mpi", "names", "status")
    assert code == 1 and said.endswith(f"import paddle finds the paddle that is installed, {environment.site}/paddle/"
                                       "__init__.py\n")
    code, said, error = environment.run("-m", "fleet_mpi", "names", "install")
    assert (code, said) == (3, "") and "never shadow one; python -m fleet_mpi train.py does" in error


def test_a_mere_folder_of_that_name_is_no_paddle(environment, tmp_path):
    environment.install()
    (tmp_path / "work" / "paddle").mkdir(parents=True)
    assert environment.run("-c", WHERE, PYTHONPATH=str(tmp_path / "work"))[1] == "fleet_mpi.paddle\n"


def test_two_copies_of_the_package_do_not_take_each_other_for_a_paddle(environment, tmp_path):
    environment.install()
    copy = tmp_path / "fleet_mpi" / "names"
    copy.mkdir(parents=True)
    (copy / "paddle.py").write_text(Path(on_path.__file__).read_text())
    assert environment.run("-c", WHERE, PYTHONPATH=str(copy))[1] == "fleet_mpi.paddle\n"


def test_a_file_that_outlives_the_package_is_ignored(environment, tmp_path):
    environment.file.write_text(f"{tmp_path}/gone/fleet_mpi/names\n")
    code, _, error = environment.run("-c", WHERE)
    assert code == 1 and error.endswith("ModuleNotFoundError: No module named 'paddle'\n")
    code, said, _ = environment.run("-m", "fleet_mpi", "names", "status")
    assert code == 1 and said.endswith("gone/fleet_mpi/names', install again\n")


def test_a_clone_that_is_no_longer_installed_says_so(environment):
    environment.install()
    (environment.site / "dependencies.pth").unlink()
    code, _, error = environment.run("-c", "try: import paddle\nexcept ModuleNotFoundError as e: print(e.name); raise")
    assert code == 1 and "delete fleet_mpi_names.pth or install fleet_mpi again" in error.splitlines()[-1]


@pytest.fixture
def said(capsys, monkeypatch):
    """Run the command in this process, in an interpreter that has no paddle; (code, stdout, stderr)."""
    monkeypatch.setattr(names_command, "_look", lambda: names_command.Seen(True, False, ""))
    monkeypatch.setattr(names_command.site, "ENABLE_USER_SITE", False)

    def run(*words):
        return (names_command.main(list(words)), *capsys.readouterr())
    return run


def test_a_read_only_environment_gets_a_sentence(said, monkeypatch):
    # Nobody can make files there, root neither.
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/proc/self")
    code, out, error = said("install")
    assert (code, out) == (3, "") and f"/proc/self/{names_command.FILE} cannot be written (" in error
    assert "(None)" not in error
    assert f"export PYTHONPATH={on_path.FOLDER}, or python -m fleet_mpi train.py" in error and "--user" not in error
    monkeypatch.setattr(names_command.site, "ENABLE_USER_SITE", True)
    assert "for this user alone: add --user" in said("install")[2]


def test_a_package_that_only_the_current_folder_has_is_not_offered(said, monkeypatch):
    monkeypatch.setattr(names_command, "_look", lambda: names_command.Seen(False, False, ""))
    code, _, error = said("install")
    assert code == 3 and "pip install -e ." in error


def test_the_users_site_folder_takes_the_file_where_it_is_asked_for(said, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "system"))
    monkeypatch.setattr(names_command.site, "getusersitepackages", lambda: str(tmp_path / "user"))
    code, _, error = said("install", "--user")
    assert code == 3 and "leave --user out" in error
    monkeypatch.setattr(names_command.site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(names_command, "_look", iter([names_command.Seen(True, False, ""),
                                                      names_command.Seen(True, True, "")]).__next__)
    assert said("install", "--user")[0] == 0
    file = tmp_path / "user" / names_command.FILE
    assert file.read_text() == on_path.FOLDER + "\n" and file.stat().st_mode & 0o777 == 0o644
    assert list(file.parent.iterdir()) == [file]


def test_a_package_in_the_same_folder_is_named_by_its_place_there(monkeypatch, tmp_path):
    (tmp_path / "fleet_mpi" / "names").mkdir(parents=True)
    monkeypatch.setattr(on_path, "FOLDER", str(tmp_path / "fleet_mpi" / "names"))
    assert names_command._line(str(tmp_path)) == os.path.join("fleet_mpi", "names")


@pytest.mark.parametrize("words", ((), ("instal",), ("install", "--usr")), ids=str)
def test_misuse_ends_with_code_2(words, capsys):
    with pytest.raises(SystemExit) as left:
        names_command.main(list(words))
    assert left.value.code == 2 and "usage:" in capsys.readouterr().err
