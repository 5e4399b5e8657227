"""Messages in a pipe between a process and its own child: a length, then the bytes."""

_LENGTH = 8  # bytes


def write_frame(file, data):
    """Write one message, at once."""
    file.write(len(data).to_bytes(_LENGTH, "little"))
    file.write(data)
    file.flush()


def read_frame(file):
    """The next message; None at the end of the pipe, also in the middle of a message."""
    head = file.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    data = file.read(int.from_bytes(head, "little"))
    return data if len(data) == int.from_bytes(head, "little") else None
