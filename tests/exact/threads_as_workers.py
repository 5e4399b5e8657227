"""The workers of a collective job as threads of one process."""

import threading

from fleet_mpi.collective.group import Group


def as_workers(count, networks, work):
    """Run ``work(group)`` as every worker, a lane for each network; returns what each returned, or raises the first
    error.

    The others may wait for one that has failed: they are left behind.
    """
    found, errors = [None] * count, []

    def run(number):
        try:
            found[number] = work(Group(number, [network.transport(number) for network in networks], count))
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and not errors:
        for thread in threads:
            thread.join(0.02)
    if errors:
        raise errors[0]
    return found
