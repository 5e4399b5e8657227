"""A server's part of a table that grows: rows for any int64 id, made by the first push that brings one.

    description  what all ranks agree on, and which server has the row of an id
    table     what one server keeps: requests and updates
    columns   all rows as columns, for saving and loading
    store     RowStore: ids, their rows, and the update rule run on them
    index     which slot keeps which id; it grows in shares
    layout    where values and states are within a row of the slab
    rules     the update rules that such tables take
    copies    a worker's own copies of rows, where workers train by themselves
    memory    address space that becomes memory page by page, and what a budget allows

Which rows are kept, each part optional:

    keeping    the words that ranks agree on; what is done by them around an update
    admission  when the row of an id becomes stored
    score      what tells how much a row matters
    eviction   which rows are forgotten, by their scores
    budget     how much memory a table may take where nobody says it
"""
