"""Where programs meet ranks: scopes bound to the connections of ``connections``.

    sessions                a scope that is connected to parameter servers, and a server's values
    collective_sessions     a scope's part in a job of equal workers
    device_copies           a worker's flat arrays on a device, and their copies to and from the host
    ops/                    the ops of distributed programs
"""
