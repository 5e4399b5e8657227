"""Programs taken apart and put together by hand, as the distributed tests and model utilities do."""

import os
import sys
import tempfile

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.core as core
from paddle.fluid import framework, layers, profiler, unique_name
from paddle.fluid.framework import Parameter, Program, name_scope, program_guard
from paddle.fluid.layer_helper import LayerHelper
from paddle.fluid.transpiler.details import program_to_code


def scaled_by_parameter(x, **kwargs):
    """A layer of the script's own: x times a trained vector, with the op appended by hand."""
    helper = LayerHelper("my_scale", **kwargs)
    weight = helper.create_parameter(attr=fluid.ParamAttr(name="my_scale_w"), shape=[int(x.shape[-1])],
                                     dtype=x.dtype, default_initializer=fluid.initializer.Constant(2.0))
    out = helper.create_variable_for_type_inference(dtype=x.dtype)
    helper.append_op(type="elementwise_mul", inputs={"X": x, "Y": weight}, outputs={"Out": out},
                     attrs={"axis": len(x.shape) - 1})
    return out


def build():
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 4
    with program_guard(main, startup), unique_name.guard():
        x = layers.data(name="x", shape=[4], dtype="float32")
        y = layers.data(name="y", shape=[1], dtype="float32")
        with name_scope("encoder"):
            with name_scope("attention"):
                hidden = layers.fc(x, size=6, act="relu", param_attr=fluid.ParamAttr(name="enc_w"))
        hidden = scaled_by_parameter(hidden)
        predict = layers.fc(hidden, size=1, param_attr=fluid.ParamAttr(name="dec_w"))
        loss = layers.mean(layers.square_error_cost(predict, y))
        forward = main.clone(for_test=True)
        _, params_grads = fluid.optimizer.SGD(0.05).minimize(loss)
    return main, startup, forward, loss, predict, params_grads


def inspect(main, params_grads):
    """Names, shapes, roles and attributes, read the way scripts read them."""
    block = main.global_block()
    names = [param.name for param in block.all_parameters()]
    print("parameters: %s" % " ".join(names))
    datas = [var.name for var in block.vars.values() if var.is_data]
    assert datas == ["x", "y"], datas
    assert all(isinstance(p, Parameter) and g.name == p.name + "@GRAD" for p, g in params_grads)
    backward = int(core.op_proto_and_checker_maker.OpRole.Backward)
    roles = [op.attr("op_role") for op in block.ops]
    print("ops=%d backward=%d" % (len(roles), sum(1 for role in roles if int(role) & backward)))
    updated = {op.input("Param")[0]: op.input("LearningRate")[0] for op in block.ops if op.type == "sgd"}
    assert sorted(updated) == sorted(names), updated
    mine = [op for op in block.ops if op.type == "elementwise_mul"][0]
    assert mine.input("Y") == ["my_scale_w"] and mine.output("Out") == mine.output_arg_names
    assert mine.has_attr("axis") and mine.attr("axis") == 1 and "axis" in mine.all_attrs()
    first = block.ops[0]
    assert "/encoder/attention/" in first.attr("op_namescope"), first.attr("op_namescope")
    assert block.var("enc_w").shape == (4, 6) and block.var("enc_w").dtype == core.VarDesc.VarType.FP32
    assert block.var("enc_w").persistable and block.var("enc_w").trainable and not block.has_var("nothing")
    assert main.num_blocks == 1 and main.current_block().idx == 0 and framework._get_var("x", main).lod_level == 0
    kinds = (core.VarDesc.VarType.FEED_MINIBATCH, core.VarDesc.VarType.FETCH_LIST, core.VarDesc.VarType.RAW)
    kept = [var.name for var in main.list_vars() if fluid.io.is_persistable(var) and var.type not in kinds]
    print("persistable=%d" % len(kept))


def edit(forward, exe, predict, sample):
    """Append ops and variables by hand to the forward program, and change an attribute."""
    block = forward.global_block()
    total = block.create_var(name="my_total", shape=[1], dtype="float32")
    block.append_op(type="reduce_sum", inputs={"X": [predict.name]}, outputs={"Out": [total]},
                    attrs={"reduce_all": True, "keep_dim": False})
    doubled = block.create_var(name="my_double", shape=[1], dtype="float32")
    op = block.append_op(type="scale", inputs={"X": ["my_total"]}, outputs={"Out": ["my_double"]},
                         attrs={"scale": 2.0})
    values = exe.run(forward, feed=sample, fetch_list=[predict.name, "my_total", doubled])
    assert np.isclose(values[0].sum(), values[1][0], rtol=1e-5) and values[2][0] == 2 * values[1][0]
    op._set_attr("scale", 3.0)
    assert exe.run(forward, feed=sample, fetch_list=[doubled])[0][0] == 3 * values[1][0]
    again = Program.parse_from_string(forward.desc.serialize_to_string())
    assert [o.type for o in again.global_block().ops] == [o.type for o in block.ops]
    parsed = exe.run(again, feed=sample, fetch_list=["my_double"])[0]
    assert parsed[0] == 3 * values[1][0]
    with tempfile.NamedTemporaryFile("w+") as code:
        program_to_code(forward, fout=code)
        code.flush()
        print("code_mentions_scale=%d" % ("scale" in open(code.name).read()))
    assert "elementwise_mul" in str(forward) and "elementwise_mul" in forward.to_string(True)


def values_by_hand(main, exe, folder):
    """Parameters set, saved, spoilt, and loaded back by a predicate."""
    scope = fluid.global_scope()
    tensor = scope.find_var("enc_w").get_tensor()
    given = np.arange(24, dtype="float32").reshape(4, 6) / 24
    assert list(tensor._get_dims()) == [4, 6] and tensor.shape() == [4, 6]
    tensor.set(given, fluid.CPUPlace())
    fluid.io.save_persistables(exe, folder, main)
    for name in ("enc_w", "dec_w"):
        held = scope.find_var(name).get_tensor()
        held.set(np.zeros(held.shape(), dtype="float32"), fluid.CPUPlace())

    def wanted(var):
        return isinstance(var, Parameter) and var.name.startswith("enc") and \
            os.path.exists(os.path.join(folder, var.name))

    fluid.io.load_vars(exe, folder, main_program=main, predicate=wanted)
    assert (np.array(tensor) == given).all() and not np.array(scope.find_var("dec_w").get_tensor()).any()
    fluid.io.load_vars(exe, folder, vars=[main.global_block().var("dec_w")])
    assert np.array(scope.find_var("dec_w").get_tensor()).any()
    scope.var("my_own").get_tensor().set(np.ones((2, 3), dtype="int64"), fluid.CPUPlace())
    assert np.array(scope.find_var("my_own").get_tensor()).sum() == 6
    assert scope.find_var("never_made") is None


def main():
    train, startup, forward, loss, predict, params_grads = build()
    inspect(train, params_grads)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    rng = np.random.RandomState(1)
    x = rng.rand(8, 4).astype("float32")
    sample = {"x": x, "y": x.sum(1, keepdims=True)}
    edit(forward, exe, predict, sample)
    with tempfile.TemporaryDirectory() as folder:
        values_by_hand(train, exe, folder)
        lower, upper, unit = fluid.contrib.memory_usage(program=train, batch_size=8)
        print("memory: about %f to %f %s" % (lower, upper, unit), file=sys.stderr)
        profiler.start_profiler("All")
        losses = [exe.run(train, feed=sample, fetch_list=[loss])[0][0] for _ in range(60)]
        profiler.stop_profiler("total", os.path.join(folder, "profile"))
        print("profile_written=%d" % os.path.exists(os.path.join(folder, "profile")))
        with profiler.profiler("CPU", "total", os.path.join(folder, "second")):
            exe.run(train, feed=sample, fetch_list=[])
    print("first=%f last=%f" % (losses[0], losses[-1]))
    print("unique=%s,%s" % (unique_name.generate("mine"), unique_name.generate("mine")))


if __name__ == "__main__":
    main()
