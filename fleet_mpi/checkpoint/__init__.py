"""Saved variables and programs: file formats, and how files are replaced without ever being half there.

``transaction`` writes (complete or absent), ``saved_files`` reads what it wrote, ``manifest`` is what they share; all
else goes through these. Knows arrays and names; which rank saves what is decided above.
"""
