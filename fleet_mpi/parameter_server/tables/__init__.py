"""What a server keeps, by kinds of tables.

    dense   variables that travel whole: flat images, updated piece by piece
    rows    tables that travel by rows
"""
