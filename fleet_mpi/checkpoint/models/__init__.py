"""Programs that are saved with their variables.

    inference_model   the part of a program that leads to its targets, and its parameters
    predictor         runs such a model without a program of the script's
    serialized        such a model as bytes
    model_files       fluid.save: a program's state under one path
    program_state     a saved program's variables as a dictionary
    load_op           the op that reads a variable from a file when it runs
"""
