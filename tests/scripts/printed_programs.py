"""A click model's transpiled programs, looked at before a job is started: who has what, and what each server runs."""

import paddle.fluid as fluid
from paddle.fluid.transpiler.details import program_to_code

PSERVERS = "192.168.0.1:6174,192.168.0.2:6174"


def ctr_net():
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
    dense = fluid.layers.data(name="dense", shape=[13], dtype="float32")
    label = fluid.layers.data(name="click", shape=[1], dtype="int64")
    table = fluid.layers.embedding(input=ids, size=[20000, 16], is_sparse=True, is_distributed=True, param_attr="table")
    both = fluid.layers.concat([fluid.layers.sequence_pool(table, "sum"), dense], axis=1)
    predict = fluid.layers.fc(input=fluid.layers.fc(input=both, size=1024, act="relu"), size=2, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))


def main():
    bias_attr = fluid.layers.data(name="never_fed", shape=[1])
    assert bias_attr, "a variable is given or it is not; it is not asked for its value"
    decay = fluid.layers.exponential_decay(learning_rate=0.1, decay_steps=100, decay_rate=0.9, staircase=True)
    clip = fluid.clip.GradientClipByValue(max=1.0)
    optimizer = fluid.optimizer.Adam(learning_rate=decay, regularization=fluid.regularizer.L2DecayRegularizer(1e-4))
    optimizer.minimize(ctr_net(), grad_clip=clip)

    t = fluid.DistributeTranspiler()
    t.transpile(trainer_id=1, pservers=PSERVERS, trainers=2)
    trainer_types = [op.type for op in t.get_trainer_program().global_block().ops]
    programs = [t.get_pserver_programs(one) for one in PSERVERS.split(",")]
    with open("/dev/null", "w") as fout:
        for main_program, startup_program in programs:
            program_to_code(main_program, fout, skip_op_callstack=True)
            program_to_code(startup_program, fout)

    first = programs[0][0]
    serv = first.global_block().ops[0]
    decay_block = first.block(serv.attr("lr_decay_block_id"))
    adams = [block for block in serv.all_attrs()["optimize_blocks"] if "adam" in [op.type for op in block.ops]]
    # Ids and gradients cross the network; updates and the schedule do not happen here.
    print("sends=%d updates=%d" % (trainer_types.count("send"),
                                   sum(one in trainer_types for one in ("adam", "increment"))))
    print("decay_ops=%d counts=%d" % (len(decay_block.ops), decay_block.ops[0].type == "increment"))
    print("blocks=%d clipped=%d" % (len(adams),
                                    sum("clip" in " ".join(op.type for op in block.ops) for block in adams)))
    print("ends_with_scales=%d" % all([op.type for op in block.ops][-3:] == ["adam", "scale", "scale"]
                                      for block in adams))
    print("chief=%d distributed=%d" % (t.get_trainer_program()._is_chief, t.has_distributed_lookup_table))
    print("rows=%d" % first.global_block().vars[t.table_name].shape[0])
    order = [op.type for op in programs[0][1].global_block().ops]
    print("constants_first=%d" % (order.index("uniform_random") > order.index("fill_constant")))
    parts = first._parameters_on_pservers.get_distributed_vars_by_ep(PSERVERS.split(",")[0])
    print("parts=%d" % len([one for one in parts if one.vtype != "Optimizer"]))


if __name__ == "__main__":
    main()
