"""``paddle.hapi``: ``paddle.Model`` trains, evaluates and predicts with a network of layers, in static programs.

==================  ===================================================================================================
model               Model: what scripts call
mode_programs       from a network, a loss and metrics to one program each for training, evaluation and prediction
first_batch         what the network is fed with, where the script does not describe it: as the first batch has it
passes              one pass over the data with its callbacks; loaders from data sets
together            what the workers of a job do together: who is first, values of all
model_files         the files of a model: parameters, the optimizer's state, a model for inference
callback            Callback: the moments of a training, and the list of those that are called
callbacks           those that are always there or wait to be given: checkpoints, learning rates, early ends
progress            ProgBarLogger: the lines that a script prints while it trains
model_summary       the table of a network's layers, their outputs and their parameters
==================  ===================================================================================================
"""
