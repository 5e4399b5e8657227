"""``paddle.hapi``: ``paddle.Model`` trains, evaluates and predicts with a network of layers, in static programs.

    model               Model: what scripts call
    mode_programs       from a network, a loss and metrics to one program each for training, evaluation and prediction
    first_batch         the network's inputs, described by the first batch where the script does not
    passes              one pass over the data with its callbacks; loaders from data sets
    together            the first worker of a job, and values over all workers
    model_files         the files of a model: parameters, the optimizer's state, a model for inference
    callback            Callback and CallbackList: what is called during a training
    callbacks           ModelCheckpoint, LRScheduler, EarlyStopping, ReduceLROnPlateau
    progress            ProgBarLogger: the lines that a script prints while it trains
    model_summary       the table of a network's layers, their outputs and their parameters
"""
