"""Detection, quantisation, box-ps, and server programs by hand: names to import, a sentence on use."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt
from fleet_mpi.fluid.layers import detection


@pytest.mark.parametrize("name", sorted(detection.REFUSED))
def test_detection_is_refused_on_use(name):
    for module in (detection, fluid.layers):
        with pytest.raises(NotBuilt, match=f"layers.*{name}: detection is not built"):
            getattr(module, name)(input=None)


@pytest.mark.parametrize("use, sentence", (
    (lambda: fluid.layers.yolov3_loss(None), "detection is not built"),
    (lambda: fluid.layers._pull_box_sparse(None), "box-ps is not built"),
    (lambda: fluid.contrib.QuantizeTranspiler(), "quantisation is not built"),
    (lambda: fluid.contrib.slim.Compressor(None), "quantisation is not built"),
    (lambda: fluid.layers.io.ListenAndServ("127.0.0.1:0", [], optimizer_mode=False), "not written by hand")))
def test_other_families_are_refused_on_use(use, sentence):
    with pytest.raises(NotBuilt, match=sentence):
        use()
