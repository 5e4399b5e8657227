"""The golden net: named recipes of training whose every bit must stay, whatever is moved.

``python -m tests.golden`` trains them and prints one digest each; ``--against REV`` trains them on another commit too,
on the same machine, and names the first step and variable that differ.

    models      the programs, by public names only
    script      what every rank of a job runs: trains one recipe and digests its whole state
    turns       asynchronous modes, in one process, in an order of arrival that is written down
    recipes     the list: which of these, on how many ranks
    commits     another commit's net in a worktree of its own, and the first difference
"""
