"""``fleet.util`` of 2.x: what the workers, the servers or all processes do together, file shards, saved programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet import saved_programs
from fleet_mpi.fleet.facade import file_shard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import ArrayLike

    from fleet_mpi.fleet.facade import Fleet
    from fleet_mpi.fleet.roles import RoleMaker


class Util:
    """Works with the role of a fleet, or with the one given to ``_set_role_maker``."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self._fleet = fleet
        self._role_maker: Any = None
        self._strategy: Any = None
        self._file_system: Any = None

    @property
    def role(self) -> RoleMaker:
        """The role maker to work with."""
        if self._role_maker is None and self._fleet is None:
            raise UsageError("UtilBase: call _set_role_maker(role) first, or take fleet.util after fleet.init()")
        return self._role_maker or self._fleet.role  # type: ignore[union-attr]  # one of them there is

    def all_reduce(self, input: ArrayLike, mode: str = "sum", comm_world: str = "worker") -> np.ndarray:
        """Collective: the arrays of the workers (or "server", "all") combined, in the shape of the input."""
        return np.array(self.role._all_reduce(np.asarray(input), mode, _domain(comm_world)))

    def all_gather(self, input: Any, comm_world: str = "worker") -> list[Any]:
        """Collective: the values of the workers (or "server"; "all": workers, then servers), in their order."""
        return self.role._all_gather(input, _domain(comm_world))

    def barrier(self, comm_world: str = "worker") -> None:
        """Collective: wait for all workers (or "server", "all")."""
        self.role._barrier(_domain(comm_world))

    def get_file_shard(self, files: Sequence[str]) -> list[str]:
        """This worker's files, as ``split_files``."""
        return file_shard(files, self.role.worker_index(), self.role.worker_num())

    def print_on_rank(self, message: object, rank_id: int) -> None:
        """Log a message on one worker."""
        if self.role.is_worker() and self.role.worker_index() == rank_id:
            notices.log().info("%s", message)

    def _set_role_maker(self, role_maker: RoleMaker | None) -> None:
        self._role_maker = role_maker

    def _set_strategy(self, strategy: Any) -> None:
        self._strategy = strategy

    def _set_file_system(self, fs_client: Any) -> None:
        self._file_system = fs_client

    _load_program = staticmethod(saved_programs.load_program)
    _save_program = staticmethod(saved_programs.save_program)
    _program_type_trans = staticmethod(saved_programs.program_type_trans)
    _visualize_graphviz = staticmethod(saved_programs.draw_from_program)
    _proto_check = staticmethod(saved_programs.check_two_programs)
    _params_check = staticmethod(saved_programs.check_vars_and_dump)


class UtilFactory:
    """Makes a Util from the dictionary of a job's parts."""

    def _create_util(self, context: Any = None) -> Util:
        made = Util()
        if context:
            made._set_role_maker(context.get("role_maker"))
            made._set_strategy(context.get("valid_strategy"))
        return made


def _domain(name: str) -> str:
    if name not in ("worker", "server", "all"):
        raise UsageError(f"comm_world: expected worker, server or all, got {name!r}")
    return name
