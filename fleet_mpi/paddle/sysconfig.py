"""``paddle.sysconfig``: where C++ extensions would find headers and libraries, of which there are none here."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.sysconfig", globals(), refused=dict.fromkeys(
    ("get_include", "get_lib"), "there is nothing to compile against: fleet_mpi has no C++ library; write a py_func"))
