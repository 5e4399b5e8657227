"""Folders of saved files. Knows paths and bytes, no format.

    transaction   writes several files as one: complete or absent
    saved_files   reads what it wrote, whatever save is under way
    manifest      what they share: which save wrote each file, and its checksum
    parts         files and folders that are being written, locked while their writer lives
    replacing     writes one file beside its target and renames it
    versions      a folder per step, of which the last ones are kept
    file_names    from names of variables to paths that stay within a folder
    storage       what a file system refuses, as sentences; flushing to disk
    local_files   LocalFS of 1.x
"""
