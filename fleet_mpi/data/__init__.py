"""Where samples come from: readers, data sets, and files read through pipe commands.

``readers`` combines readers (a reader is a callable without arguments that returns an iterator of
samples), ``sets`` has the data sets, ``home`` finds their files, ``dataset`` and
``distributed_datasets`` read files in the ``multislot`` text format through the user's own pipe
command. Nothing here knows a Program: variables are seen as name, dtype, shape and LoD level.
"""
