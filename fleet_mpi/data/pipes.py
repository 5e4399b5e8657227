"""A file read through the user's pipe command: a chain of processes, never a shell.

The text is split as a shell would split words; ``|`` starts the next process. Knows nothing of what
the lines mean.
"""

import os
import shlex
import signal
import subprocess
import sys

import fleet_mpi
from fleet_mpi.errors import NotBuilt, UsageError

# What only a shell understands; taken literally it would do something else in silence.
_SHELL_ONLY = set("<>;&$`")
_REMOTE = ("hdfs:", "afs:")


class PipeCommand:
    """A command line such as ``python reader.py`` or ``grep -v '#' | python reader.py``."""

    def __init__(self, text):
        self.text = text
        self.stages = split_stages(text)

    def lines(self, path, download_cmd="cat"):
        """The lines (bytes) that the command writes for one file.

        Raises:
            UsageError: no such file or program, or a process of the chain failed.
        """
        stages = self._feeding_stages(path, download_cmd) + self.stages
        if all(stage == ["cat"] for stage in stages):
            with _opened(path) as file:
                yield from file
            return
        remote = path.startswith(_REMOTE)
        processes = []
        try:
            with open(os.devnull, "rb") if remote else _opened(path) as file:
                self._start(stages, file, processes)
            yield from processes[-1].stdout
            self._check_exits(processes, path)
        finally:
            _stop(processes)

    @staticmethod
    def _feeding_stages(path, download_cmd):
        if path.startswith(_REMOTE):
            if download_cmd == "cat":
                raise NotBuilt(f"dataset: {path}: there is no HDFS client here; give download_cmd a program that "
                               "writes the file's content to stdout, or mount or copy the files")
            return [shlex.split(download_cmd) + [path]]
        return [["gzip", "-dc"]] if path.endswith(".gz") else []

    def _start(self, stages, source, processes):
        for stage in stages:
            words, environment = prepared(stage)
            try:
                process = subprocess.Popen(words, stdin=source, stdout=subprocess.PIPE, env=environment)
            except OSError as problem:
                raise UsageError(f"pipe command {self.text!r}: cannot start {stage[0]!r}: {problem.strerror}; it is "
                                 "looked for in PATH, and no shell is used") from None
            if processes:
                source.close()  # only the new process reads it now, and may end the one before by leaving
            processes.append(process)
            source = process.stdout

    def _check_exits(self, processes, path):
        codes = [process.wait() for process in processes]
        for place, code in enumerate(codes):
            # A process whose reader has seen enough dies of SIGPIPE, as before `head` in a shell.
            if code != 0 and not (code == -signal.SIGPIPE and place < len(codes) - 1):
                raise UsageError(f"pipe command {self.text!r} failed on {path}: {shlex.join(processes[place].args)} "
                                 f"ended with {_ending(code)}; its messages are on stderr")


def split_stages(text):
    """The word lists of a command line's processes; quotes protect blanks and ``|``."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"pipe command: expected a text like 'python reader.py', got {text!r}")
    try:
        stages = [shlex.split(part) for part in _cut_at_pipes(text)]
    except ValueError as problem:
        raise UsageError(f"pipe command {text!r}: {problem}") from None
    if not all(stages):
        raise UsageError(f"pipe command {text!r}: nothing between two '|', or before or after one")
    return stages


def _cut_at_pipes(text):
    parts, quote, escaped = [""], None, False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = None if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "|":
            parts.append("")
            continue
        elif letter in _SHELL_ONLY:
            raise UsageError(f"pipe command {text!r}: {letter!r} needs a shell, and none is used; quote it if it is "
                             "meant literally, or put the command in a script file")
        parts[-1] += letter
    return parts


def prepared(stage):
    """Words and environment of one process: Python means this Python, which also finds this package."""
    if stage[0] not in ("python", sys.executable) and not stage[0].startswith(("python2", "python3")):
        return stage, None
    home = os.path.dirname(os.path.dirname(os.path.abspath(fleet_mpi.__file__)))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, home])}
    return [sys.executable, *_with_our_names(stage[1:])], environment


def _with_our_names(words):
    """Where ``paddle`` stands for this package in this process, let it do so in the reader's too."""
    paddle = sys.modules.get("paddle")
    if paddle is None or not getattr(paddle, "__name__", "").startswith("fleet_mpi"):
        return words
    # Options of Python itself that take no value may stand before the script or -m.
    at = next((place for place, word in enumerate(words) if not word.startswith("-") or word in ("-m", "-c", "-")),
              len(words))
    if at == len(words) or words[at] in ("-c", "-"):
        return words
    return [*words[:at], "-m", "fleet_mpi", *words[at:]]


def _opened(path):
    try:
        return open(path, "rb")
    except OSError as problem:
        raise UsageError(f"dataset: cannot read {path!r}: {problem.strerror}; set_filelist takes paths "
                         "of existing files") from None


def _ending(code):
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _stop(processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.stdout.close()
        process.wait()
