"""Metrics that are part of a program: accuracy of the best classes, area under the ROC curve, overlap of classes."""

from fleet_mpi.kernels.reference import metric as kernels
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op


@op("accuracy", "Out? Indices Label", "Accuracy Correct Total")
class Accuracy:
    """The share of rows whose label is among the classes in Indices (from top_k); also as two counts."""

    def infer(k):
        rows, labels = k.shape("Indices")[0], k.shape("Label")
        if -1 not in (rows, labels[0]) and rows != labels[0]:
            k.fail(f"expected a label for each of {rows} rows, got Label {list(labels)}")
        k.set("Accuracy", [1], "float32", lod=())
        k.set("Correct", [1], "int32", lod=())
        k.set("Total", [1], "int32", lod=())

    def run(k):
        indices, labels, xp = k["Indices"], k["Label"].reshape(-1), k.xp
        indices = indices.reshape(indices.shape[0], -1)
        share, correct, total = k["Accuracy"], k["Correct"], k["Total"]
        count, rows = kernels.count_hits.pick(indices), int(indices.shape[0])
        return lambda: (count(indices, labels, correct), total.fill(rows), xp.divide(correct, float(rows), share))


@op("auc", "Predict Label StatPos StatNeg", "AUC StatPosOut StatNegOut",
    attrs={"curve": "ROC", "num_thresholds": 4095, "slide_steps": 1})
class Auc:
    """The area under the ROC curve from histograms of the last column of Predict, one for each kind of label.

    ``slide_steps`` 0: over everything seen so far. Else over that many last steps: the states are flat, a
    histogram per remembered step, their sum, and the number of steps.
    """

    def infer(k):
        """One float64; the states stay as they are."""
        if k.attr("curve") != "ROC":
            k.fail(f"curve: only 'ROC' is computed (as in the original), got {k.attr('curve')!r}")
        size, least = k.meta("StatPos").size, state_size(k)
        if size < least or k.meta("StatNeg").size != size:
            k.fail(f"expected StatPos and StatNeg of {least} numbers for {k.attr('num_thresholds')} thresholds and "
                   f"{k.attr('slide_steps')} steps, got {list(k.shape('StatPos'))} and {list(k.shape('StatNeg'))}")
        k.set("AUC", [1], "float64", lod=())
        k.set("StatPosOut", k.shape("StatPos"), k.dtype("StatPos"), lod=())
        k.set("StatNegOut", k.shape("StatNeg"), k.dtype("StatNeg"), lod=())

    def run(k):
        """Count into the histograms, then one pass over them."""
        predict, labels, xp = k["Predict"], k["Label"].reshape(-1), k.xp
        scores = predict.reshape(predict.shape[0], -1)[:, -1]
        states = [(k["StatPos"], k["StatPosOut"]), (k["StatNeg"], k["StatNegOut"])]
        copies = [(old, new) for old, new in states if old is not new]
        steps, bins = k.attr("slide_steps"), k.attr("num_thresholds") + 1
        positive, negative = (new.reshape(-1)[:state_size(k)] for _, new in states)
        summed = slice(steps * bins, (steps + 1) * bins)
        sums, auc = (positive[summed], negative[summed]), k["AUC"]
        add, area = kernels.add_to_sliding_histograms.pick(scores), kernels.area_under_roc.pick(positive)

        def run():
            for old, new in copies:
                xp.copyto(new, old)
            bad = add(scores, labels, positive, negative, steps)
            if bad >= 0:
                k.fail(f"prediction {float(scores[bad])!r} in row {bad} lies outside [0, 1]: "
                       f"apply sigmoid or softmax first")
            area(*sums, auc)
        return run


def state_size(k):
    """How many numbers each histogram state has."""
    steps, bins = k.attr("slide_steps"), k.attr("num_thresholds") + 1
    return (steps + 1) * bins + 1 if steps else bins


@op("mean_iou", "Predictions Labels InWrongs* InCorrects* InMeanIou*", "OutMeanIou OutWrong OutCorrect",
    attrs={"num_classes": 2})
class MeanIou:
    """The mean over classes of intersection over union; also how often each class was wrong, and right.

    Counts and means of earlier batches may come in; they are added.
    """

    def infer(k):
        """A number, and two counts per class."""
        k.set("OutMeanIou", [1], "float32", lod=())
        k.set("OutWrong", [k.attr("num_classes")], "int32", lod=())
        k.set("OutCorrect", [k.attr("num_classes")], "int32", lod=())

    def run(k):
        """Three counts; classes that do not occur do not count in the mean."""
        guesses, labels = k["Predictions"].reshape(-1), k["Labels"].reshape(-1)
        classes, xp = k.attr("num_classes"), k.xp
        out, wrong, correct = k["OutMeanIou"], k["OutWrong"], k["OutCorrect"]
        checks = id_check(k, classes, "the predicted classes"), id_check(k, classes, "the classes")

        def run():
            for check, line in zip(checks, (guesses, labels)):
                check(line)
            # On a device nothing was refused yet, and the counts must be of all classes and no others.
            guessed, labelled = (xp.clip(line, 0, classes - 1) for line in (guesses, labels))
            hit = guesses == labels
            right = xp.bincount(labelled[hit], minlength=classes)
            missed = xp.bincount(labelled[~hit], minlength=classes) + xp.bincount(guessed[~hit], minlength=classes)
            xp.copyto(correct, right + sum(k.all("InCorrects")), casting="same_kind")
            xp.copyto(wrong, missed + sum(k.all("InWrongs")), casting="same_kind")
            union = correct + wrong
            shares = correct / xp.maximum(union, 1)
            mean = shares.sum() / xp.maximum((union > 0).sum(), 1)
            xp.copyto(out, mean.reshape(1) + sum(k.all("InMeanIou")), casting="same_kind")
        return run
