"""Where programs meet ranks.

    sessions                a scope that is connected to parameter servers, and a server's life
    collective_sessions     a scope's part in a job of equal workers
    ops/                    the ops of distributed programs
"""
