"""Saved variables and programs: a save is complete or absent, and any number of servers, or one process, loads it.

    saving      every save: fluid.io, paddle.static and fleet meet here
    loading     every load
    variables   which variables of a program are meant
    sources     where they were saved
    resuming    where random numbers go on after a load
    objects     paddle.save: dictionaries in one file
    values/     where values are: a scope, the servers, a server's blocks
    formats/    how variables lie in files
    folders/    files that are replaced together, checked when they are read, and kept by version
    models/     models for inference, a program's state under one path or as a dictionary or bytes, the op ``load``

A save goes downwards: ``saving`` takes the Values of a program, opens a transaction (``folders``) and lets the values
write themselves in a format. Which rank saves is decided above.
"""
