"""Pipe command of ctr_dataset.py: reads `label<TAB>ids of slot 1<TAB>ids of slot 2`, writes slots."""

import paddle.fluid.incubate.data_generator as dg


class CtrReader(dg.MultiSlotDataGenerator):
    """Two slots of ids of any number, and the click."""

    def generate_sample(self, line):
        def reader():
            label, dnn, lr = line.rstrip("\n").split("\t")
            yield [("dnn_data", [int(i) for i in dnn.split(",")]),
                   ("lr_data", [int(i) for i in lr.split(",")]),
                   ("click", [int(label)])]

        return reader


if __name__ == "__main__":
    CtrReader().run_from_stdin()
