"""Adds to programs: gradients, parameters, and what belongs to updates.

    backward            gradient ops, from the loss back to the parameters
    nested_gradients    gradients of bodies: branches and loops
    value_copies        copies of values that a gradient reads after they were overwritten

    layer_helper        adds a layer's ops, parameters and activation to the default programs
    param_attr          ParamAttr: a parameter's name, initializer, regularizer, clip and learning rate
    weight_norm         a weight as length times direction
    initializers        ops that give parameters their first values

    clip                gradient clipping
    regularizers        weight decay
    schedules           learning rates that change with the step
    amp                 mixed precision: loss scaling, skipped steps; ``amp_lists``: which ops are float16

    variable_math       operators of variables: ``a + b``, ``a[0]``
    variable_methods    methods of variables: ``x.sum()``
    variable_arguments  arguments of layers that are numbers or variables

    evaluators          metrics that a program accumulates (before 1.0)
    feed_fetch          feed and fetch ops of programs for inference
    trial_step          ``run_check``: one step of a small network
"""
