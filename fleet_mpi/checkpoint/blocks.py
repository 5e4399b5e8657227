"""Variables that were saved in blocks: servers that save before or after they serve write what each of them has.

A block is a file ``NAME.block1``, its rows in the tensor format; the manifest says which rows each block of a variable
has. Read, they are the whole variable again. Who saves last decides: a variable that is saved whole has no blocks any
more.
"""

import numpy as np

from fleet_mpi.errors import CheckpointDamaged

_NOTE = "blocks of "


def name_of(name, block):
    """The file of a block."""
    return f"{name}.block{block}"


def note(save, name, rows):
    """Let a save say that a variable is in blocks; ``rows`` are (first row, number of rows) of all of them, in
    order."""
    save.note(_NOTE + name, until=name, rows=[list(one) for one in rows])


def files_of(files, name):
    """The files that a variable is in: its own, or those of its blocks."""
    noted = files.manifest.notes.get(_NOTE + name)
    return [name] if noted is None else [name_of(name, block) for block in range(len(noted["rows"]))]


def joined(files, name, parts):
    """The whole of (array, lod) pairs, one for each file of ``files_of``."""
    noted = files.manifest.notes.get(_NOTE + name)
    if noted is None:
        return parts[0]
    arrays = [array for array, _ in parts]
    got = [len(array) for array in arrays]
    if got != [rows for _, rows in noted["rows"]]:
        raise CheckpointDamaged(f"{files.folder}: the blocks of {name} have {got} rows, expected "
                                f"{[rows for _, rows in noted['rows']]}: not all servers that cut it so have saved")
    return np.concatenate(arrays), ()
