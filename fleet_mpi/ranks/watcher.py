"""``python watcher.py ...``: the process beside a machine's ranks that reports what they cannot report themselves.

A stopped rank says nothing, a killed one neither, and MPI_Init and MPI_Finalize hold Python's lock: the ranks that wait
there can be neither asked nor interrupted. The watcher is outside all of that. The kernel tells it which rank is
stopped or has ended; it names that rank in one sentence and ends the job. The first process of a machine starts it
(``lifeline``), before MPI starts; it ends with the last rank. Needs the standard library only, and knows no MPI.

Ranks are connected by a socket that keeps packets apart. A rank sends ``name`` (who it is, its deadline in seconds),
``phase`` (what it is in, and the seconds that may take; empty: nothing), and ``bye`` (``in order``: its last act, with
its exit code, or ``reported``: it has said itself why it fails, and is about to end the job). The watcher answers
``watching``, and may send ``end`` with the exit code, or 0: flush what is written, mpirun ends the job.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import time

TYPE_CHECKING = False  # that of typing, which takes longer to import than all of the above
if TYPE_CHECKING:
    from collections.abc import Callable

STALLED, PEER_LOST = 5, 4  # exit codes, as in errors.py
# Our launcher's variable for the folder of its notes, the note of the first failure's code, and that of a sentence
# which the launcher says if nobody else has named a rank (launch/notes.py).
NOTES, FIRST_FAILURE, VANISHED = "FLEET_MPI_LAUNCH_DIR", "first_to_fail", "vanished"
WATCHING = b"watching"
# The number is the exit code that it leads to: a rank takes it with C's _exit, also where Python cannot run.
END_AT_ONCE = signal.SIGTRAP
LOOK_EVERY_S = 0.1
LOOK_AGAIN_S = 0.01   # while the job is being ended: what ranks share must be seen before they are killed
STOOD_STILL_S = 1.0   # without a look for so long, this process was stopped itself, with all the others
PART_OF_DEADLINE = 0.8  # spoken before those give up who only know that they wait
GATHER_S = 0.05       # after one rank's end: a launcher that ends all ranks does it within so long
GATHER_BY_MPICH_S = 0.005  # its mpirun stops listening soon after a rank is lost
KILLED_S = 5.0        # for the kernel to end what was killed
LAUNCHER_ACTS_S = 1.0  # for mpirun to end the others by itself
FLUSH_S, ACT_S = 0.1, 1.0  # for ranks to write what they have, and between the means that end them
NOBODY_CAME_S = 1.0   # the others
# Whose memory this is shows while a rank has it mapped; MPICH's is known by the job's name, too.
MEMORY = "/dev/shm"
SEGMENTS = ("/dev/shm/mpich_", "/dev/shm/sm_segment.", "/dev/shm/vader_segment.")
SEGMENTS_AT_A_TIME = 4  # of ranks: reading what one has mapped takes about a millisecond


def segments(process: int | str) -> set[str]:
    """The paths of MPI's shared memory that a process has mapped; none once it has ended."""
    try:
        with open(f"/proc/{process}/maps") as file:
            return {path for path in (line.split()[-1] for line in file) if is_segment(path)}
    except OSError:
        return set()


def is_segment(path: str) -> bool:
    """Whether this is memory that MPI shares between ranks."""
    return path.startswith(SEGMENTS) and os.path.dirname(path) == "/dev/shm"


def segments_of_job(job: str) -> set[str]:
    """The paths of the memory that MPICH's ranks of a job share on this machine, by the name that mpirun gave the job:
    each has that name's 32-bit FNV-1a hash, and the number of a machine."""
    number = 0x811C9DC5
    for byte in job.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    begins = tuple(f"mpich_{kind}_{number:x}_" for kind in ("shm", "vci"))
    try:
        return {os.path.join(MEMORY, name) for name in os.listdir(MEMORY) if job and name.startswith(begins)}
    except OSError:
        return set()


class Rank:
    """What is known of one process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != os.getuid():
            raise PermissionError(f"process {self.pid} belongs to another user")
        self.handle = _handle(self.pid)
        self.name, self.deadline_s, self.is_known = f"process {self.pid}", 0.0, False
        self.phase = ""
        self.phase_ends: float | None = None
        self.bye, self.code = "", 0
        self.stopped_since: float | None = None
        # As wait gives it; None: its parent has collected the process before it was seen.
        self.status: int | None = None
        self.segments: set[str] = set()
        self.left_early = False
        self.ended_as = 0  # the first, second, ... to end, which is to close its files
        self.closing = -1  # a file descriptor of the same connection that tells only that

    def take(self, packet: bytes) -> None:
        """Take in what the rank says; what cannot be meant is passed over: this process must not die of it."""
        try:
            kind, text, number = packet.decode().split("\t")
            seconds = float(number)
        except ValueError:
            return
        if kind == "name":
            self.name, self.deadline_s, self.is_known = text, seconds, True
            self.note_segments()
        elif kind == "phase":
            self.phase, self.phase_ends = text, time.monotonic() + seconds if text else None
        elif kind == "segment" and is_segment(text):
            self.segments.add(text)
        elif kind == "bye":
            self.bye, self.code = text, int(seconds)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process."""
        return self._stat()[:1] == ["T"]

    def note_status(self) -> None:
        """Keep the exit status of a process that is about to end or has; gone once its parent has collected it."""
        fields = self._stat()
        self.status = int(fields[49]) if fields else self.status

    def note_segments(self) -> None:
        """Keep the names of the memory that MPI shares between ranks of this machine."""
        self.segments |= segments(self.pid)

    def _stat(self) -> list[str]:
        """What the kernel tells, from the state on; empty: the process is gone."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                return file.read().rpartition(")")[2].split()
        except OSError:
            return []

    def is_lost(self) -> bool:
        """Whether a process that has ended was not meant to, and could not say so."""
        is_unexpected = self.bye != "reported" and self.status not in (None, 0, self.code << 8)
        return not self.bye or self.left_early or is_unexpected

    def order(self, code: int) -> None:
        """Ask the process to end with this code; 0: to flush what it has written."""
        try:
            self.connection.send(b"end\t%d" % code, socket.MSG_DONTWAIT)
        except OSError:
            pass  # it has ended

    def send(self, number: int) -> None:
        """Send a signal; a process that is gone already is none of our business."""
        try:
            signal.pidfd_send_signal(self.handle, number)  # type: ignore[arg-type]  # None: has ended, is sent nothing
        except OSError:
            pass

    @property
    def signal(self) -> int | None:
        """The number of the signal that has ended it, 0 for none; None where that was not seen."""
        return None if self.status is None else self.status & 0x7F

    def how_it_ended(self) -> str:
        """For the sentence, from the wait status as far as it was seen."""
        number = self.signal
        if number:
            known = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
            return f"was killed by signal {number} ({known})"
        if self.left_early:
            return "has ended before the other ranks had started MPI"
        if self.status:
            return f"ended with exit code {self.status >> 8} and without a word (os._exit?)"
        return "ended without a word (killed, or os._exit)"


def _handle(pid: int) -> int | None:
    """A file descriptor that is readable once the process has ended; None where it has, and is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class Watcher:
    """Watches ``count`` ranks that connect to a listening socket.

    ``launcher_line`` is the file descriptor to MPICH's mpirun, or -1, ``job`` the name it gave to the job, or empty.
    """

    def __init__(self, listener: socket.socket, count: int, launcher_line: int = -1, job: str = "",
                 write: Callable[[str], None] | None = None) -> None:
        self.listener, self.count, self.launcher_line, self.reports_ends = listener, count, launcher_line, True
        self.job = job
        self.write = write or _write
        self.ranks: dict[int, Rank] = {}
        self.ended: list[Rank] = []
        self.came = 0
        self.began = self.looked = time.monotonic()
        self.lost_at: float | None = None
        self.ends = 0
        # Tells what happened in the order in which it did, poll in another one. But who has sent something before keeps
        # its place: so the order of ends is that of file descriptors which tell nothing else.
        self.poll = select.epoll()
        self.poll.register(listener, select.EPOLLIN)
        self.connections: dict[int, Rank] = {}
        self.handles: dict[int | None, Rank] = {}
        self.closings: dict[int, Rank] = {}

    def run(self) -> None:
        """Watch until all ranks have ended, then remove the memory that killed ones have left behind."""
        try:
            while not self._is_over():
                self.turn(LOOK_AGAIN_S if self._is_ending() else LOOK_EVERY_S)
        finally:
            self._sweep()

    def _is_ending(self) -> bool:
        return any(rank.bye == "reported" for rank in self.ranks.values())

    def _sweep(self) -> None:
        if self.ranks:
            return
        for path in segments_of_job(self.job).union(*(rank.segments for rank in self.ended)):
            try:
                os.unlink(path)
            except OSError:
                pass  # MPI has removed it, as it does at an end in order

    def turn(self, seconds: float) -> None:
        """Take what comes within so many seconds, then look at every rank."""
        self._take_in(seconds)
        if self.lost_at is not None and self.reports_ends:
            self._wait_for_ends(GATHER_S if self.launcher_line < 0 else GATHER_BY_MPICH_S)
            self._report_loss()
        self._look(time.monotonic())

    def _take_in(self, seconds: float) -> None:
        happened = [number for number, _ in self.poll.poll(seconds)]
        closings = [self.closings[number] for number in happened if number in self.closings]
        happened = [number for number in happened if number not in self.closings]
        for rank in closings:
            self._note_closing(rank)
        for number in happened:
            if number == self.listener.fileno():
                self._accept()
            elif number in self.connections:
                self._read(self.connections[number])
            elif number in self.handles:
                self._note_end(self.handles[number])

    def _is_over(self) -> bool:
        if self.ranks:
            return False
        # They have met before they connect, so that those who do come are quick.
        return self.came >= self.count or time.monotonic() > (self.lost_at or self.began) + NOBODY_CAME_S

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        try:
            if self.came >= self.count:
                raise ConnectionRefusedError("all ranks are here: this is a process that one of them has started")
            rank = Rank(connection)
            connection.send(WATCHING)
        except OSError:
            connection.close()  # somebody else's, or in a world of processes that is not ours
            return
        self.came += 1
        self.ranks[rank.pid] = self.connections[connection.fileno()] = self.handles[rank.handle] = rank
        rank.closing = os.dup(connection.fileno())
        self.closings[rank.closing] = rank
        self.poll.register(connection, select.EPOLLIN)
        self.poll.register(rank.closing, select.EPOLLRDHUP)
        if rank.handle is None:
            self._note_end(rank)
        else:
            self.poll.register(rank.handle, select.EPOLLIN)

    def _read(self, rank: Rank) -> None:
        try:
            packet = rank.connection.recv(4096)
        except OSError:
            packet = b""
        if packet:
            rank.take(packet)
            if rank.bye == "reported":
                self._hold()
            return
        self._hang_up(rank)

    def _hold(self) -> None:
        """The job is about to end: ranks in MPI_Init must not make memory now that nobody would come to know of."""
        for rank in self.ranks.values():
            if rank.phase_ends is not None:
                rank.send(signal.SIGSTOP)

    def _note_closing(self, rank: Rank) -> None:
        """The process has closed its end: it is the next to end."""
        rank.note_status()  # before the launcher has collected the process: then its status is gone
        self.ends += 1
        rank.ended_as = self.ends
        del self.closings[rank.closing]
        self.poll.unregister(rank.closing)
        os.close(rank.closing)

    def _hang_up(self, rank: Rank) -> None:
        if self.connections.pop(rank.connection.fileno(), None):
            self.poll.unregister(rank.connection)
            rank.connection.close()

    def _note_end(self, rank: Rank) -> None:
        rank.note_status()
        while rank.connection.fileno() in self.connections and select.select([rank.connection], [], [], 0)[0]:
            self._read(rank)  # its last words
        self._hang_up(rank)
        if rank.closing in self.closings:
            self._note_closing(rank)  # a process that it has left behind may have its end
        del self.handles[rank.handle], self.ranks[rank.pid]
        if rank.handle is not None:
            self.poll.unregister(rank.handle)
            os.close(rank.handle)
        self.ended.append(rank)
        # MPI_Init waits for it for ever.
        rank.left_early = rank.bye == "in order" and any(other.phase for other in self.ranks.values())
        if rank.is_lost() and self.lost_at is None:
            self.lost_at = time.monotonic()
            self._hold()
            for other in list(self.ranks.values())[:1]:
                other.note_segments()  # the last moment: mpirun is about to kill it

    # ------------------------------------------------------------------ verdicts

    def _look(self, now: float) -> None:
        if now - self.looked > STOOD_STILL_S:
            self._forget_stops()
        self.looked = now
        if self.lost_at is not None and self.ranks and now > self.lost_at + LAUNCHER_ACTS_S:
            self.end(PEER_LOST)
        self._note_segments()
        stopped = [rank for rank in self.ranks.values() if rank.is_known and rank.is_stopped()]
        if stopped and len(stopped) == len(self.ranks) and (len(stopped) > 1 or self.count == 1):
            # The whole job is suspended (Ctrl-Z, a scheduler), or other machines have to judge.
            self._forget_stops()
            return
        for rank in list(self.ranks.values()):
            self._judge(rank, rank in stopped, now)

    def _note_segments(self) -> None:
        """MPI_Init makes them: look at some of the ranks that are in it, at others the next time."""
        starting = [rank for rank in self.ranks.values() if rank.phase_ends is not None]
        for rank in starting[:SEGMENTS_AT_A_TIME]:
            rank.note_segments()
            self.ranks[rank.pid] = self.ranks.pop(rank.pid)

    def _forget_stops(self) -> None:
        for rank in self.ranks.values():
            rank.stopped_since = None

    def _judge(self, rank: Rank, is_stopped: bool, now: float) -> None:
        """End the job if this rank is stopped for too long, or its phase takes too long."""
        if not is_stopped:
            rank.stopped_since = None
            if rank.phase_ends is not None and now > rank.phase_ends:
                self._stalled(rank, f"{rank.phase} took too long: a rank did not come (FLAGS_rpc_deadline)")
            return
        rank.stopped_since = rank.stopped_since or now
        limit = PART_OF_DEADLINE * max(one.deadline_s for one in self.ranks.values())
        if now - rank.stopped_since > limit:
            self._stalled(rank,
                          f"this process was stopped by a signal (SIGSTOP) {limit:.1f} s ago, and the others wait for "
                                f"it (FLAGS_rpc_deadline sets it in ms)")

    def _stalled(self, rank: Rank, why: str) -> None:
        sentence = f"fleet_mpi: {rank.name}: Stalled: {why}"
        _leave_note(VANISHED, sentence)  # the output of this process ends with the first rank's
        self.write(sentence + "\n")
        self.end(STALLED, rank)

    def _report_loss(self) -> None:
        """Name the rank that was the first to end without a word."""
        self.reports_ends = False
        self.ended.sort(key=lambda rank: rank.ended_as)
        lost = [rank for rank in self.ended if rank.is_lost() and rank.is_known]
        # A launcher ends the others by signals: one that left by itself was the cause, whatever came first.
        lost.sort(key=lambda rank: rank.signal != 0)
        if lost and (lost[0].left_early or not self._launcher_did(lost)):
            self._say_unless_launcher_does(f"fleet_mpi: {lost[0].name} {lost[0].how_it_ended()}")
            if self.came < self.count and not lost[0].left_early:
                time.sleep(FLUSH_S)  # mpirun drops what it has not read
                self._tell_launcher(PEER_LOST)

    def _say_unless_launcher_does(self, sentence: str) -> None:
        """Under our launcher a parent of each rank tells how it ended (launch/watched.py), if it still lives itself."""
        if os.environ.get(NOTES):
            _leave_note(VANISHED, sentence)
        else:
            self.write(sentence + "\n")

    def _launcher_did(self, lost: list[Rank]) -> bool:
        """Whether mpirun is ending these ranks, for a reason that it or another rank has told."""
        if any(rank.bye == "reported" for rank in (*self.ended, *self.ranks.values())):
            return True
        if self.came < self.count:
            # One that never came may be the cause, unless this one left by itself: nobody makes a rank end with 0, and
            # MPICH's takes no notice of one that leaves before MPI starts.
            return lost[0].signal != 0 or lost[0].status != 0 and self.launcher_line < 0
        # Open MPI's sends SIGTERM to all, after MPI_Abort for example.
        return self.launcher_line < 0 and len(lost) > 1 and lost[0].signal == signal.SIGTERM

    def end(self, code: int, culprit: Rank | None = None) -> None:
        """End the ranks of this machine, and with them the job: by mpirun or by asking, then by force."""
        self.reports_ends = False
        _leave_note(FIRST_FAILURE, str(code))
        others = [rank for rank in self.ranks.values() if rank is not culprit]
        # MPICH's mpirun mixes the codes of ranks that end by themselves; told to abort, it ends with the one it is
        # told.
        has_line = self.launcher_line >= 0
        for rank in others:
            rank.order(0 if has_line else code)
        if has_line and not self._wait_for_ends(FLUSH_S):
            self._tell_launcher(code)
        everybody = [*others, *([culprit] if culprit else [])]
        # A stopped process takes its signals when it goes on.
        for numbers in ((END_AT_ONCE, signal.SIGCONT), (signal.SIGKILL,)):
            if not self._wait_for_ends(ACT_S):
                for rank in everybody:
                    for number in numbers:
                        rank.send(number)
        self._wait_for_ends(KILLED_S)
        sys.exit(0)

    def _tell_launcher(self, code: int) -> None:
        try:
            os.write(self.launcher_line, b"cmd=abort exitcode=%d\n" % code)
        except OSError:
            pass  # it has gone

    def _wait_for_ends(self, seconds: float) -> bool:
        """Whether all ranks have ended, after so many seconds at most."""
        until = time.monotonic() + seconds
        while self.ranks and time.monotonic() < until:
            self._take_in(0.02)
        return not self.ranks


def _write(text: str) -> None:
    try:
        os.write(2, text.encode())
    except OSError:
        pass  # nobody reads it any more


def _leave_note(name: str, text: str) -> None:
    """Tell our launcher, if it is there; the first note of a name counts."""
    folder = os.environ.get(NOTES)
    if folder:
        try:
            with open(os.path.join(folder, f"{name}.watcher"), "w") as file:
                file.write(text)
            os.link(file.name, os.path.join(folder, name))
        except OSError:
            pass  # a rank was quicker, or the folder is on another machine


def main(listener: str, count: str, launcher_line: str, job: str) -> None:
    """Watch the ranks of this machine; the arguments are those of Watcher as text."""
    Watcher(socket.socket(fileno=int(listener)), int(count), int(launcher_line), job).run()


if __name__ == "__main__":
    # No child of the rank that starts it, and in a session of its own: signals to the ranks are not meant for it.
    if os.fork():
        os._exit(0)
    os.setsid()
    main(*sys.argv[1:])
