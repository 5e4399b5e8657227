"""What stands in front of a line's slots, as numbers beside its samples: columns that are moved with them and not fed.

``ins_id``: any text, by a hash of 63 bits. ``content``: any text, dropped. ``logkey``: digits of base 16, of which the
11th to 13th (from 0) say what kind of item was shown, the next two its place, the next 16 the search.
"""

import hashlib

import numpy as np

from fleet_mpi.data.slots import Column, Records, Slot
from fleet_mpi.errors import UsageError


def _key(name):
    return Slot(name, np.dtype("int64"), False, (1,), True)


LINE_ID, SEARCH, KIND, RANK = (_key(name) for name in ("@line_id", "@search", "@kind", "@rank"))
KEY_SLOTS = {"ins_id": [LINE_ID], "content": [], "logkey": [SEARCH, KIND, RANK]}


def keyed(records, lines, groups, where, first_number):
    """The records of these lines (bytes), with the columns of the groups that stand in front of their slots."""
    slots, columns = list(records.slots), list(records.columns)
    rows = [(number, words) for number, words in enumerate((line.split() for line in lines), first_number) if words] \
        if any(KEY_SLOTS[group] for group in groups) else []
    for place, group in enumerate(groups):
        if KEY_SLOTS[group]:
            texts = [(number, words[2 * place + 1]) for number, words in rows]
            found = [_line_id(texts)] if group == "ins_id" else _log_keys(texts, where)
            slots += KEY_SLOTS[group]
            columns += [Column(np.array(one, np.int64), np.ones(len(one), np.int64)) for one in found]
    return Records(slots, columns)


def column_of(records, slot):
    """The numbers of a key, one per sample."""
    if slot not in records.slots:
        raise UsageError(f"dataset: the lines in memory have no {slot.name[1:]}; call set_parse_ins_id(True) or "
                         "set_parse_logkey(True) before load_into_memory()")
    return records.columns[records.slots.index(slot)].values


def _line_id(texts):
    return [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1 for _, text in texts]


def _log_keys(texts, where):
    rows = []
    for number, text in texts:
        try:
            rows.append((_signed(int(text[16:32], 16)), int(text[11:14], 16), int(text[14:16], 16)))
        except ValueError:
            raise UsageError(f"dataset: {where}, line {number}: expected a logkey of at least 17 digits of base 16, "
                             f"got {text.decode('utf-8', 'backslashreplace')!r}") from None
    return [list(column) for column in zip(*rows)] or [[], [], []]


def _signed(number):
    return number - 2 ** 64 if number >= 2 ** 63 else number
