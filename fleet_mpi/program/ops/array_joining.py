"""From the tensors of an array to one tensor, and the paths of a beam search through its steps."""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.program.ops.lod_rank import add_at
from fleet_mpi.program.ops.tensor_array import infer_list_like_x


@op("tensor_array_to_tensor", "X", "Out OutIndex", attrs={"axis": 1, "use_stack": False}, dynamic=True)
class TensorArrayToTensor:
    """All tensors of an array, concatenated or stacked along ``axis``; ``OutIndex`` has their sizes there, int32."""

    def infer(k):
        """While building only: how many there are is known when it runs."""
        shape, axis = list(k.shape("X")), k.attr("axis")
        if k.attr("use_stack"):
            shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, -1)
        elif shape:
            shape[axis] = -1
        k.set("Out", shape, k.dtype("X"), ())
        k.set("OutIndex", (-1,), np.int32, ())

    def run(k):
        def run():
            values = tensors_of(k)
            join = k.xp.stack if k.attr("use_stack") else k.xp.concatenate
            made = join([one.array for one in values], axis=k.attr("axis"))
            sizes = np.array([1 if k.attr("use_stack") else one.array.shape[k.attr("axis")] for one in values],
                             np.int32)
            k.put("Out", made, meta=Meta(made.shape, made.dtype))
            k.put("OutIndex", arrays.to_module(sizes, k.xp), meta=Meta(sizes.shape, np.int32))
        return run

    def make_grad(walk, op, grads):
        """Each tensor's part added to the array's gradient."""
        name = op.input("X")[0]
        if name in walk.wanted and grads["Out"][0]:
            walk.block.append_op("tensor_array_to_tensor_grad", {"X": [name], "Out@GRAD": grads["Out"]},
                                 {"X@GRAD": [walk.open_array(name)]},
                                 {"axis": op.attrs["axis"], "use_stack": op.attrs["use_stack"]})


def tensors_of(k):
    """The tensors of X; there must be one at every position, and at least one."""
    values = k["X"]
    if not isinstance(values, list) or not values or any(one.array is None for one in values):
        k.fail(f"expected an array with a tensor at every position, got {k.name('X')!r} with "
               f"{sum(one.array is not None for one in values) if isinstance(values, list) else 0}")
    return values


@op("tensor_array_to_tensor_grad", "X Out@GRAD", "X@GRAD", attrs={"axis": 1, "use_stack": False}, dynamic=True)
class TensorArrayToTensorGrad:
    """What flows to every tensor, added to the list of gradients in place."""

    infer = infer_list_like_x

    def run(k):
        """Cut, as the tensors were joined."""
        def run():
            # Behind this the axis is the first.
            grad, begin = k.xp.moveaxis(k["Out@GRAD"], k.attr("axis"), 0), 0
            for where, one in enumerate(tensors_of(k)):
                if k.attr("use_stack"):
                    part = grad[where]
                else:
                    count = one.array.shape[k.attr("axis")]
                    part = k.xp.moveaxis(grad[begin:begin + count], 0, k.attr("axis"))
                    begin += count
                add_at(k["X@GRAD"], where, k.xp.ascontiguousarray(part), one.lod_offsets)
        return run


@op("gather_tree", "Ids Parents")
class GatherTree:
    """Whole sentences from a search's steps [steps, batch, beams]: of each last beam, the ids on the way to it."""

    def infer(k):
        if k.shape("Ids") != k.shape("Parents") and -1 not in (*k.shape("Ids"), *k.shape("Parents")):
            k.fail(f"expected Ids and Parents of one shape, got {k.shape('Ids')} and {k.shape('Parents')}")
        k.set("Out", k.shape("Ids"), lod=())

    def run(k):
        """From the last step back, all beams at once."""
        ids, parents, out, xp = k["Ids"], k["Parents"], k["Out"], k.xp

        def run():
            beam = xp.broadcast_to(xp.arange(ids.shape[2]), ids.shape[1:])
            for step in range(len(ids) - 1, -1, -1):
                xp.copyto(out[step], xp.take_along_axis(ids[step], beam, 1))
                beam = xp.take_along_axis(parents[step], beam, 1)
        return run
