"""Layers: functions that add ops to the default program and return their output variables.

By family; ``fluid.layers`` and ``paddle.*`` give them the names that scripts know.

Functions of 1.x, arithmetic and shapes:

    data                    variables that a script feeds
    tensor                  parameters, constants, ranges, random numbers, copies
    activation              activations and elementary functions
    math                    arithmetic of two variables, products, scaling, norms
    comparison              comparisons and logic
    reduction               sums, means, products and extremes
    manipulation            shapes, parts, order
    positions               crops, scattered additions, masks, triangles
    tensor_products         einsum, bilinear products
    statistics              median, histogram
    distributions           probability distributions
    early_tensor            the first ``paddle.tensor`` of 1.7 and 1.8

Functions of 1.x, networks:

    dense                   fc
    embedding               rows of a table by id
    nn                      convolution, pooling, normalisation, dropout, softmax
    normalization           group, instance, spectral and local response norm
    images                  patches, grids, resizing, channels
    click                   layers of click models
    tree_nodes              nodes of an index tree: children, samples
    tree_convolution        convolution over trees
    matching                texts matched word by word
    nets                    groups of layers (``fluid.nets``)
    sequence_nets           groups of sequence layers (``fluid.nets``)

Losses and metrics of 1.x:

    loss                    a loss per row or element
    sampled_loss            losses over a few of many classes: nce, hsigmoid, sampled softmax
    embedding_loss          center_loss, npair_loss, teacher_student_sigmoid_loss
    metric                  accuracy, auc, mean_iou
    metric_bundle           sums for the metrics of click models

Sequences and recurrence of 1.x:

    sequence                layers over inputs with a LoD
    sequence_labels         CRF, CTC, chunks, edit distance
    recurrent               dynamic LSTM and GRU, and single steps
    projected_lstm          dynamic_lstmp
    recurrent_units         BasicGRUUnit, BasicLSTMUnit
    stacked_rnn             basic_gru, basic_lstm, lstm
    rnn_cells               cells, and rnn over a cell
    static_rnn              StaticRNN: equally long sequences
    dynamic_rnn             DynamicRNN: sequences of any length
    lod_rank                sequences cut into steps, longest first
    decoding                Decoder and dynamic_decode
    beam_decoder            BeamSearchDecoder
    beam_search             one step of a beam search, and its sentences
    state_cell              StateCell of ``contrib.decoder``
    cell_decoders           decoders over a StateCell

Control flow, the host, other workers:

    control_flow            Switch, While, cond, case
    if_else                 IfElse: rows parted by a mask
    tensor_array            lists of tensors
    host_calls              Print, py_func, Assert
    collective              exchanges between workers, for a job of one

Functions of 2.x:

    functional_math         ``paddle.tensor``: arithmetic
    functional_tensor       ``paddle.tensor``: shapes, parts, places
    linear_algebra          ``paddle.tensor``: matrices
    functional_activation   ``paddle.nn.functional``: activations
    functional_nn           ... convolution, pooling, normalisation of images
    functional_lines        ... of lines [N, C, L]
    functional_volumes      ... of volumes [N, C, D, H, W]
    functional_images       ... borders, sizes, similarities
    functional_dropout      ... dropout
    functional_loss         ... losses
    given_weights           ... linear, embedding

Classes of 2.x (``paddle.nn``):

    layer                   Layer: the base of all
    layer_containers        Sequential, LayerList, ParameterList
    layer_hooks             functions called around a layer's forward
    input_spec              InputSpec
    classes                 Linear, Embedding, BatchNorm, and other common ones
    activation_classes      activations
    convolution_classes     convolutions and their transposes
    deformable_classes      deformable convolution, also as a function
    image_classes           pools, norms, borders and sizes of lines and images
    volume_classes          pools and borders of volumes
    dropout_classes         dropout of channels, alpha dropout
    synchronised_norm       SyncBatchNorm
    loss_classes            losses
    recurrent_classes       cells, RNN, LSTM, GRU
    transformer             attention, transformer

How layers are made:

    single_op               a layer that is one op
    generated               layers made from the op table
    arguments               names of 1.x and 2.x for the same argument; whole numbers
"""
