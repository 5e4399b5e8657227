"""Communicators whose ranks are threads of the test's own process."""

import queue
import threading

import numpy as np
import pytest


class Request:
    """What a communicator's call returns: done when ``look()`` says so, and from then on."""

    def __init__(self, look):
        self._look = look
        self._done = False

    def Test(self):
        """As MPI's."""
        self._done = self._done or self._look()
        return self._done

    def __bool__(self):
        """As mpi4py's: no longer when it is over."""
        return not self._done

    def Cancel(self):
        """As MPI's: done, whatever comes."""
        self._done = True


class ThreadComm:
    """The part of a communicator that meetings use; messages with a tag arrive in order."""

    def __init__(self, rank, size, boxes=None):
        self.rank, self.size = rank, size
        self._boxes = {} if boxes is None else boxes

    def box(self, *key):
        """The messages on one way: (group, sender, receiver, tag)."""
        return self._boxes.setdefault(key, queue.SimpleQueue())

    def Isend(self, array, to, tag):
        """Done at once, as small messages are."""
        self.box("", self.rank, to, tag).put(array.copy())
        return Request(lambda: True)

    def Irecv(self, array, sender, tag):
        """Done when something lies in the box."""
        box = self.box("", sender, self.rank, tag)

        def look():
            if box.empty():
                return False
            array[...] = box.get().reshape(array.shape)
            return True
        return Request(look)

    def Iallgather(self, mine, together):
        """As Iallgatherv with equal parts."""
        counts = [mine.size] * self.size
        return self.Iallgatherv(mine, [together.reshape(-1), (counts, np.arange(self.size) * mine.size)])

    def Iallgatherv(self, mine, target):
        """Everyone's part at its place."""
        together, (counts, places) = target
        for to in range(self.size):
            self.box("gather", self.rank, to, 0).put(mine.copy())
        waiting = dict(enumerate(zip(counts, places)))

        def look():
            for rank, (count, place) in list(waiting.items()):
                box = self.box("gather", rank, self.rank, 0)
                if not box.empty():
                    together[place:place + count] = box.get()
                    del waiting[rank]
            return not waiting
        return Request(look)


@pytest.fixture
def on_ranks():
    """Run ``body(comm)`` on so many ranks; returns what each returned or raised."""
    def on_ranks(count, body):
        boxes, results = {}, [None] * count

        def run(rank):
            try:
                results[rank] = body(ThreadComm(rank, count, boxes))
            except Exception as error:
                results[rank] = error
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        return results
    return on_ranks
