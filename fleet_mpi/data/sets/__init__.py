"""The data sets, one module each: the original's files where they are, a synthetic stand-in where not.

Every stand-in is the same in every process, can be learnt from, and is announced by one log line.
"""
