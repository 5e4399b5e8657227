"""Layers that label sequences: conditional random fields, CTC, and how far labels are from the right ones.

Sequences come with a LoD, or padded with a length each.
"""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.manipulation import squeeze, topk
from fleet_mpi.program.layers.single_op import single_op


def linear_chain_crf(input, label, param_attr=None, length=None):
    """Minus the log likelihood of each sequence's tags, [sequences, 1]; the parameter is [tags + 2, tags].

    Its first rows weigh the tag a sequence starts and ends with, the others which tag follows which.
    """
    helper = LayerHelper("linear_chain_crf", input=input, param_attr=param_attr)
    tags = input.shape[-1]
    transition = helper.create_parameter(helper.param_attr, [tags + 2, tags], input.dtype)
    made = {slot: [helper.create_variable_for_type_inference(input.dtype, stop_gradient=slot != "LogLikelihood")]
            for slot in ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")}
    helper.append_op("linear_chain_crf", {"Emission": [helper.input()], "Transition": [transition],
                                          "Label": [helper.require(label, "label")], **_lengths(Length=length)}, made)
    return made["LogLikelihood"][0]


def crf_decoding(input, param_attr, label=None, length=None):
    """Each row's tag on the best path; with a label, 1 where that is the tag and 0 elsewhere.

    ``param_attr`` names the parameter of the linear_chain_crf; it is made where the program has none yet.
    """
    helper = LayerHelper("crf_decoding", input=input, param_attr=param_attr)
    block, name, tags = helper.main_program.global_block(), helper.param_attr.name, input.shape[-1]
    transition = block.var(name) if name is not None and block.has_var(name) else helper.create_parameter(
        helper.param_attr, [tags + 2, tags], input.dtype)
    path = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("crf_decoding", {"Emission": [helper.input()], "Transition": [transition],
                                      **_lengths(Label=label, Length=length)}, {"ViterbiPath": [path]})
    return path


def chunk_eval(input, label, chunk_scheme, num_chunk_types, excluded_chunk_types=None, seq_length=None):
    """(precision, recall, F1, chunks inferred, labelled and correct) of a batch."""
    helper = LayerHelper("chunk_eval")
    shares = [helper.create_variable_for_type_inference("float32", stop_gradient=True) for _ in range(3)]
    counts = [helper.create_variable_for_type_inference("int64", stop_gradient=True) for _ in range(3)]
    slots = ("Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    helper.append_op("chunk_eval", {"Inference": [helper.require(input, "input")],
                                    "Label": [helper.require(label, "label")], **_lengths(SeqLength=seq_length)},
                     {slot: [var] for slot, var in zip(slots, shares + counts)},
                     {"num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme,
                      "excluded_chunk_types": list(excluded_chunk_types or [])})
    return (*shares, *counts)


def warpctc(input, label, blank=0, norm_by_times=False, input_length=None, label_length=None):
    """The CTC cost of each sequence's labels, [sequences, 1]; ``input`` holds logits, not probabilities.

    Padded: input [rows, sequences, classes], label [sequences, longest]. ``norm_by_times`` divides gradients by the
    number of rows.
    """
    return single_op("warpctc", {"Logits": input, "Label": label, "LogitsLength": input_length,
                                 "LabelLength": label_length}, {"blank": blank, "norm_by_times": norm_by_times},
                     out="Loss", also=("WarpCTCGrad",))


def ctc_greedy_decoder(input, blank, input_length=None, padding_value=0, name=None):
    """Each row's best class, equal neighbours merged, blanks dropped; padded, also how many are left of each."""
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, best = topk(helper.require(input, "input"), k=1)
    attrs = {"merge_repeated": True, "blank": blank}
    out = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    if input_length is None:
        helper.append_op("ctc_align", {"Input": [best]}, {"Output": [out]}, attrs)
        return out
    left = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("ctc_align", {"Input": [squeeze(best, [2])], "InputLength": [input_length]},
                     {"Output": [out], "OutputLength": [left]}, {**attrs, "padding_value": padding_value})
    return out, left


def edit_distance(input, label, normalized=True, ignored_tokens=None, input_length=None, label_length=None):
    """(each sequence's edit distance from its label [sequences, 1], how many sequences there are)."""
    helper = LayerHelper("edit_distance")
    if ignored_tokens:
        input, label = (single_op("sequence_erase", {"X": one}, {"tokens": list(ignored_tokens)})
                        for one in (input, label))
    out = helper.create_variable_for_type_inference("float32", stop_gradient=True)
    count = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("edit_distance", {"Hyps": [input], "Refs": [label],
                                       **_lengths(HypsLength=input_length, RefsLength=label_length)},
                     {"Out": [out], "SequenceNum": [count]}, {"normalized": normalized})
    return out, count


def _lengths(**given):
    """The inputs that are there."""
    return {slot: [var] for slot, var in given.items() if var is not None}
