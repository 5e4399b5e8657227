"""Fault injection: one fault in one rank at one moment of a job, and whether the job ended as it must.

``python -m tests.mpi.faults --count 200 --seed 1`` draws and runs so many, and prints the table.

========================  ==============================================================================
``trial``                 one fault as data, and how a seed draws it
``expected``              the judge's table: exit codes, time, and who must be named, for every fault
``naming``                whom a job's own words blame
``traces``                what a job leaves behind: processes, segments of shared memory, files
``run``                   runs a trial, with a hard limit in time
``report``                table, summary, and the file of results
``script``                what ranks run: a training script written for Paddle
``array_script``          the same by ``fleet_mpi.join``, with parameters, or a table that grows too
``hooks``                 what fails in them, and where
========================  ==============================================================================
"""
