"""Products beyond those of two matrices: bilinear forms, sums by Einstein's convention; and position encoding."""

import math

import numpy as np

from fleet_mpi.program.graph.registry import FORWARD, op


@op("bilinear_tensor_product", "X Y Weight Bias?", grad_reads="X Y Weight")
class BilinearTensorProduct:
    """Out[:, i] = x Weight[i] y for the rows x of X and y of Y, plus a bias."""

    def infer(k):
        """A number for each row and matrix."""
        x, y, weight = k.shape("X"), k.shape("Y"), k.shape("Weight")
        if len(weight) != 3 or (x[-1], y[-1]) != tuple(weight[1:]):
            k.fail(f"expected a Weight [size, {x[-1]}, {y[-1]}] for X {list(x)} and Y {list(y)}, got {list(weight)}")
        k.set("Out", [x[0], weight[0]])

    def run(k):
        """All products with X at once, then row by row with Y."""
        x, y, weight, bias, out, xp = k["X"], k["Y"], k["Weight"], k["Bias"], k["Out"], k.xp
        product = k.scratch((weight.shape[0], x.shape[0], y.shape[1]), x.dtype)

        def run():
            xp.matmul(x, weight, out=product)
            xp.copyto(out, xp.sum(product * y, axis=2).T)
            if bias is not None:
                xp.add(out, bias.reshape(1, -1), out=out)
        return run

    def grad(k):
        """Each factor's from the other two."""
        x, y, weight, dout, xp = k["X"], k["Y"], k["Weight"], k["Out@GRAD"], k.xp
        dx, dy, dweight, dbias = (k[slot + "@GRAD"] for slot in ("X", "Y", "Weight", "Bias"))
        by_matrix = dout.T

        def run():
            each = by_matrix[:, :, None]
            if dx is not None:
                xp.sum(each * xp.matmul(y, weight.transpose(0, 2, 1)), axis=0, out=dx)
            if dy is not None:
                xp.sum(each * xp.matmul(x, weight), axis=0, out=dy)
            if dweight is not None:
                xp.matmul((each * x).transpose(0, 2, 1), y, out=dweight)
            if dbias is not None:
                xp.copyto(dbias, xp.sum(dout, axis=0).reshape(dbias.shape))
        return run


def subscripts(k, ranks):
    """(labels of each operand, labels of the output); dots become labels of their own."""
    text = k.attr("equation").replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if len(operands) != len(ranks):
        k.fail(f"equation {text!r} names {len(operands)} operands, got {len(ranks)}")
    dots = max([rank - len(one.replace("...", "")) for one, rank in zip(operands, ranks) if "..." in one] or [0])
    if dots < 0:
        k.fail(f"equation {text!r} has more labels than an operand of {ranks} dimensions")
    spare = "".join(chr(ord("0") + i) for i in range(dots))
    labels = [one.replace("...", spare[dots - (rank - len(one.replace("...", ""))):] if "..." in one else "")
              for one, rank in zip(operands, ranks)]
    if not arrow:
        flat = "".join(labels)
        right = "..." * bool(spare) + "".join(sorted(one for one in set(flat) - set(spare) if flat.count(one) == 1))
    out = right.replace("...", spare)
    check_labels(k, text, labels, ranks, out)
    return labels, out


def check_labels(k, text, labels, ranks, out):
    """Refuse what does not fit, and diagonals."""
    for one, rank in zip(labels, ranks):
        if len(one) != rank:
            k.fail(f"equation {text!r}: {one!r} does not fit an operand of {rank} dimensions")
        if len(set(one)) != len(one):
            k.fail(f"equation {text!r}: a label that occurs twice in one operand (a diagonal) is not supported")
    if len(set(out)) != len(out) or set(out) - set("".join(labels)):
        k.fail(f"equation {text!r}: the output's labels must be different ones of the operands'")


def sizes_of(k, labels, shapes):
    """{label: size}; all operands must agree."""
    sizes = {}
    for one, shape in zip(labels, shapes):
        for label, size in zip(one, shape):
            known = sizes.get(label, -1)
            if known not in (-1, size) and size != -1:
                k.fail(f"equation {k.attr('equation')!r}: sizes {known} and {size} of one label differ in "
                       f"{[list(shape) for shape in shapes]}")
            sizes[label] = max(known, size)
    return sizes


@op("einsum", "Operands*", attrs={"equation": ""}, grad_reads="Operands")
class Einsum:
    """The sum of products over the labels that the output does not name."""

    def infer(k):
        """The sizes of the output's labels."""
        shapes = k.shapes("Operands")
        labels, out = subscripts(k, [len(shape) for shape in shapes])
        sizes = sizes_of(k, labels, shapes)
        k.set("Out", [sizes[label] for label in out] or [1], lod=())

    def run(k):
        """As products of stacks of matrices, from left to right."""
        values, out, xp = k.all("Operands"), k["Out"], k.xp
        labels, wanted = subscripts(k, [value.ndim for value in values])
        return lambda: xp.copyto(out, contracted(xp, values, labels, wanted).reshape(out.shape))

    def grad(k):
        """Of each operand, the product of all others with the output's gradient."""
        values, grads, xp = k.all("Operands"), k.all("Operands@GRAD"), k.xp
        shapes = [k.meta_of(name).shape for name in k.attrs[FORWARD]["Operands"]]
        labels, out = subscripts(k, [len(shape) for shape in shapes])
        sizes = sizes_of(k, labels, shapes)
        dout = k["Out@GRAD"].reshape([sizes[label] for label in out])

        def run():
            for i, grad in enumerate(grads):
                if grad is not None:
                    others, names = values[:i] + values[i + 1:], labels[:i] + labels[i + 1:]
                    known = [label for label in labels[i] if label in out or any(label in one for one in names)]
                    found = contracted(xp, [dout, *others], [out, *names], "".join(known))
                    full = [sizes[label] if label in known else 1 for label in labels[i]]
                    xp.copyto(grad, found.reshape(full))  # a label that only this operand has was summed over
        return run


def contracted(xp, values, labels, wanted):
    """The labelled arrays multiplied and summed, as an array with the wanted labels."""
    value, names = values[0], labels[0]
    for i in range(1, len(values)):
        needed = set(wanted).union(*labels[i + 1:])
        value, names = multiplied(xp, value, names, values[i], labels[i], needed)
    value, names = summed(xp, value, names, set(wanted))
    return value.transpose([names.index(label) for label in wanted])


def summed(xp, value, names, needed):
    """Without the labels that nobody needs."""
    axes = tuple(i for i, label in enumerate(names) if label not in needed)
    return (xp.sum(value, axis=axes), "".join(label for label in names if label in needed)) if axes else (value, names)


def multiplied(xp, one, first, other, second, needed):
    """Two labelled arrays as one product of stacks of matrices; returns the array and its labels."""
    one, first = summed(xp, one, first, needed | set(second))
    other, second = summed(xp, other, second, needed | set(first))
    both = [label for label in first if label in second]
    stack, inner = [label for label in both if label in needed], [label for label in both if label not in needed]
    rows, columns = [label for label in first if label not in both], [label for label in second if label not in both]
    size = {**dict(zip(first, one.shape)), **dict(zip(second, other.shape))}

    def matrices(value, names, *groups):
        turned = value.transpose([names.index(label) for group in groups for label in group])
        return turned.reshape([math.prod(size[label] for label in group) for group in groups])
    product = xp.matmul(matrices(one, first, stack, rows, inner), matrices(other, second, stack, inner, columns))
    names = stack + rows + columns
    return product.reshape([size[label] for label in names]), "".join(names)


@op("add_position_encoding", "X", attrs={"alpha": 1.0, "beta": 1.0})
class AddPositionEncoding:
    """alpha X + beta times sines and cosines of the position, in [N, steps, width] or in sequences [rows, width]."""

    def infer(k):
        shape = k.shape("X")
        if not (len(shape) == 3 or len(shape) == 2 and k.lod("X")) or shape[-1] % 2:
            k.fail(f"expected X [N, steps, width] or sequences [rows, width] of even width, got {list(shape)}"
                   f"{'' if k.lod('X') else ' without LoD'}")
        k.set("Out", shape)

    def run(k):
        """The table of positions is made once."""
        x, out, xp, alpha = k["X"], k["Out"], k.xp, float(k.attr("alpha"))
        table = encoding(positions(k), x.shape[-1]) * float(k.attr("beta"))
        table = xp.asarray(table.astype(x.dtype))
        return lambda: xp.add(xp.multiply(x, alpha, out=out), table, out=out)

    def grad(k):
        dx, dout, xp, alpha = k["X@GRAD"], k["Out@GRAD"], k.xp, float(k.attr("alpha"))
        return lambda: xp.multiply(dout, alpha, out=dx)


def positions(k):
    """The position of each row in its sequence."""
    if len(k.shape("X")) == 3:
        return np.arange(k.shape("X")[1])
    offsets = k.lod("X")[-1]
    return np.concatenate([np.arange(end - start) for start, end in zip(offsets, offsets[1:])] or [np.arange(0)])


def encoding(places, width):
    """[positions, width]: sines in the first half, cosines in the second, each slower than the one before."""
    half = width // 2
    slower = 10000.0 ** (np.arange(half) / (half - 1)) if half > 1 else np.array([10000.0])
    angles = places[:, None] / slower
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
