"""Where 1.8 and the first steps to 2.0 had names that 2.0 moved or gave up: tables for the modules of ``paddle``.

Each name with the module that has it, as ``missing_name`` takes it; nothing is imported before it is asked for. Here
are those that the original's ``__init__`` files of that time really imported, or its list of aliases names; what stood
there only as a planned line (``# ... #DEFINE_ALIAS``) is not. The one later name is said to be one.
"""

_LAYERS = "fleet_mpi.program.layers"

# paddle.framework, and paddle itself: what 2.0 calls paddle.static.
FRAMEWORK = {
    **dict.fromkeys("""BuildStrategy CompiledProgram ExecutionStrategy Executor ParallelExecutor Print Variable
                       WeightNormParamAttr append_backward create_global_var default_main_program
                       default_startup_program global_scope gradients name_scope program_guard py_func
                       scope_guard""".split(), "fleet_mpi.paddle.static"),
    "manual_seed": "fleet_mpi.paddle.modes:seed"}

TENSOR = {
    **dict.fromkeys(("clamp", "div", "elementwise_equal", "elementwise_sum"), f"{_LAYERS}.early_tensor"),
    **{f"elementwise_{name}": f"{_LAYERS}.math"
       for name in ("add", "sub", "mul", "div", "max", "min", "mod", "pow", "floordiv")},
    **{f"reduce_{name}": f"{_LAYERS}.reduction" for name in ("all", "any", "max", "mean", "min", "prod", "sum")},
    **dict.fromkeys(("create_tensor", "fill_constant"), f"{_LAYERS}.tensor"),
    **dict.fromkeys(("mul", "sums"), f"{_LAYERS}.math"),
    **dict.fromkeys(("has_inf", "has_nan"), f"{_LAYERS}.comparison"),
    **dict.fromkeys(("crop_tensor", "unique_with_counts"), f"{_LAYERS}.positions")}

PADDLE = {**FRAMEWORK, **TENSOR, "data": "fleet_mpi.fluid", "shuffle": "fleet_mpi.fluid.io",
          **{f"{word}_imperative{end}": f"fleet_mpi.fluid:{word}_dygraph{end}"
             for word, end in (("enable", ""), ("disable", ""), ("in", "_mode"))}}

NN = {
    "data": "fleet_mpi.fluid",
    **dict.fromkeys("""beam_search beam_search_decode case clip clip_by_norm cond gather_tree switch_case
                       while_loop""".split(), "fleet_mpi.fluid.layers"),
    **dict.fromkeys(("GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue"), "fleet_mpi.fluid.clip"),
    # Layers that only eager mode had: their use says so.
    **dict.fromkeys(("BilinearTensorProduct", "HSigmoid", "InstanceNorm", "Pool2D", "RowConv", "UpSample"),
                    "fleet_mpi.fluid.dygraph")}

# NumpyArrayInitializer is not of 1.8: scripts for later 2.x have it from here.
INITIALIZER = dict.fromkeys(("MSRA", "NumpyArrayInitializer", "Xavier"), "fleet_mpi.fluid.initializer")

FUNCTIONAL = dict.fromkeys("""
    adaptive_pool2d adaptive_pool3d add_position_encoding affine_channel assign bpr_loss brelu center_loss
    continuous_value_model cosine_decay edit_distance erf exponential_decay filter_by_instag fsp_matrix grid_sampler
    hard_shrink hard_sigmoid hard_swish hash hsigmoid huber_loss image_resize image_resize_short inverse_time_decay
    iou_similarity kldiv_loss l2_normalize linear_lr_warmup logsigmoid lrn margin_rank_loss natural_exp_decay noam_decay
    pad2d pad_constant_like piecewise_decay polynomial_decay pool2d pool3d random_crop rank_loss resize_bilinear
    resize_nearest resize_trilinear sampled_softmax_with_cross_entropy shuffle_channel sigmoid_cross_entropy_with_logits
    similarity_focus smooth_l1 soft_relu space_to_depth tanh_shrink teacher_student_sigmoid_loss
    warpctc""".split(), "fleet_mpi.fluid.layers")

# Known there, and refused by fluid's sentences.
DETECTION = dict.fromkeys("""
    anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign collect_fpn_proposals
    deformable_roi_pooling density_prior_box detection_output distribute_fpn_proposals generate_mask_labels
    generate_proposal_labels generate_proposals multiclass_nms polygon_box_transform prior_box prroi_pool psroi_pool
    retinanet_detection_output retinanet_target_assign roi_align roi_perspective_transform roi_pool rpn_target_assign
    ssd_loss target_assign yolo_box yolov3_loss""".split(),
                          "fleet_mpi.fluid.layers")

OPTIMIZER = dict.fromkeys("""
    AdadeltaOptimizer AdagradOptimizer AdamOptimizer AdamaxOptimizer DGCMomentumOptimizer DecayedAdagrad
    DecayedAdagradOptimizer Dpsgd DpsgdOptimizer ExponentialMovingAverage Ftrl FtrlOptimizer LambOptimizer LarsMomentum
    LarsMomentumOptimizer LookaheadOptimizer ModelAverage MomentumOptimizer PipelineOptimizer RMSPropOptimizer
    RecomputeOptimizer SGDOptimizer""".split(), "fleet_mpi.fluid.optimizer")
