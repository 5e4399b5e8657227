"""Where samples come from: readers, data sets, loaders, and files read through pipe commands.

Readers (callables without arguments that return an iterator of samples) and data sets:

    readers                 decorators of readers: batch, shuffle, chain, ...
    sets/                   the data sets as readers, one file each
    sets_by_number/         the data sets as ``paddle.io.Dataset``
    home                    the folder of data files
    images/                 images in memory, and their transforms
    image_backend           the kind of image that data sets give: Pillow's or arrays
    ppm_files               reads PPM images
    safe_pickle             reads pickles of plain values and arrays only
    seeding                 the randomness of shuffling

From samples to feeds:

    feeder                  DataFeeder: lists of samples to arrays
    loader                  loaders over a script's generator (1.x)
    batch_queue             the queue between such a loader and the executor
    background              work done ahead of its consumer, in threads

``DataLoader`` of 2.x:

    data_loader             DataLoader
    io_datasets             map-style and iterable datasets
    samplers                the order of samples, and batches of their numbers
    collating               samples of a batch to arrays
    fetching                sample numbers to batches, in any process
    worker_pool             the worker processes, seen from the trainer
    worker_process          the program that such a process runs
    frames                  messages in the pipes between them
    by_value                pickles with the script's own functions and classes

Files read through a pipe command:

    dataset                 QueueDataset and InMemoryDataset (1.x)
    distributed_datasets    the same under their names of 2.x
    dataset_base            what they share
    pipes                   a file read through a chain of processes
    multislot, slots        the multislot text format: writing and reading
    line_keys               ids in front of a line's slots
    merging                 samples with the same line id, merged
    page_views              batches of whole page views
    exchanging              samples in memory, shuffled over all workers
    feed_desc               DataFeedDesc: the description of a multislot file
    hdfs                    names of the HDFS client; refused when called

Nothing here knows a Program: variables are seen as name, dtype, shape and LoD level.
"""
