"""Ops of program/ops/sampled_logits.py."""

import math

import numpy as np

from tests.unit.program.ops.checking import Built, Case, checks

rng = np.random.default_rng(0)
LABELS = np.array([[1], [3], [4]])
SAMPLES = np.array([[1, 0, 3], [3, 0, 3], [4, 0, 3]])
CHANCES = rng.uniform(0.1, 0.9, SAMPLES.shape)


def corrected(inputs, attrs):
    out = np.take_along_axis(inputs["Logits"], SAMPLES, 1) - np.log(CHANCES)
    if attrs["remove_accidental_hits"]:
        out[1, 2] = -1e20
    return {"Samples": SAMPLES, "Probabilities": CHANCES, "SampledLogits": out, "SampledLabels": LABELS * 0}


def case(removes, grads="Logits"):
    inputs = {"Logits": rng.normal(size=(3, 5)), "Labels": LABELS, "CustomizedSamples": SAMPLES,
              "CustomizedProbabilities": CHANCES}
    return Case("sample_logits", inputs, {"num_samples": 2, "use_customized_samples": True,
                                          "remove_accidental_hits": removes}, corrected, grads, "SampledLogits",
                note=f"removes {removes}")


ONE_HOT = np.eye(4)[[2, 0, 3]]
CASES = [case(False), case(True, grads=""),
         Case("sampling_id", {"X": ONE_HOT}, {"seed": 5}, {"Out": np.array([2, 0, 3])}),
         Case("sampling_id", {"X": np.full((2, 4), 0.25)}, {"min": 0.5, "max": 0.7}, {"Out": np.array([2, 2])},
              note="within bounds"),
         Case("sampling_id", {"X": np.zeros((2, 4))}, {}, {"Out": np.array([3, 3])}, note="no chance at all")]
test_forward, test_gradient, test_device = checks(CASES)


def test_drawn_classes_differ_and_have_the_chance_of_being_among_them():
    classes, count = 20, 15
    expect = {"Samples": np.zeros((2, 16), np.int64), "Probabilities": np.zeros((2, 16)),
              "SampledLogits": np.zeros((2, 16)), "SampledLabels": np.zeros((2, 1), np.int64)}
    built = Built(Case("sample_logits", {"Logits": np.zeros((2, classes)), "Labels": np.array([[4], [9]])},
                       {"num_samples": count, "seed": 3}, expect))
    samples, chances, logits = built.run([f"{slot}_out_0" for slot in ("Samples", "Probabilities", "SampledLogits")])
    assert samples[:, 0].tolist() == [4, 9] and (samples[0, 1:] == samples[1, 1:]).all()
    assert len(set(samples[0, 1:].tolist())) == count
    once = np.log((samples + 2) / (samples + 1)) / math.log(classes + 1)
    tries = np.log1p(-chances) / np.log1p(-once)
    np.testing.assert_allclose(tries, tries[0, 0], rtol=1e-6)
    assert round(tries[0, 0]) > count, "fifteen different ones of twenty are not found at once"
    kept = logits > -1e19
    np.testing.assert_allclose(logits[kept], -np.log(chances)[kept], rtol=1e-6)
    assert (~kept).sum() == np.isin([4, 9], samples[0, 1:]).sum()


def test_columns_are_drawn_by_their_probabilities():
    shares = np.array([0.1, 0.6, 0.05, 0.25])
    built = Built(Case("sampling_id", {"X": np.tile(shares, (4000, 1))}, {"seed": 2}, {"Out": np.zeros(4000)}))
    found, = built.run(["Out_out_0"])
    np.testing.assert_allclose(np.bincount(found, minlength=4) / 4000, shares, atol=0.025)
