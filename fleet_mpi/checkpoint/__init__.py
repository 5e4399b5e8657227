"""Saved variables and programs: file formats, and how files are replaced without ever being half there.

Knows arrays and names; which rank saves what is decided above.
"""
