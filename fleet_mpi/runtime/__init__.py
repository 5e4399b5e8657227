"""Where programs meet ranks: scopes bound to the connections of ``connections``.

    sessions                a scope that is connected to parameter servers, and a server's values
    collective_sessions     a scope's part in a job of equal workers
    device_copies           a worker's arrays on a device beside the flat ones
    ops/                    the ops of distributed programs
"""
