"""Beam search: one step of it, and the sentences at its end."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.single_op import single_op


def beam_search(pre_ids, pre_scores, ids, scores, beam_size, end_id, level=0, is_accumulated=True, name=None,
                return_parent_idx=False):
    """The best ``beam_size`` continuations of each source: (ids, scores), with ``return_parent_idx`` also parents.

    ``scores`` are those of whole sentences if ``is_accumulated``, else the last words' probabilities.
    ``ids`` may be None: then a candidate's id is its column.
    """
    helper = LayerHelper("beam_search", name=name)
    selected_ids = helper.create_variable_for_type_inference(pre_ids.dtype, stop_gradient=True)
    selected_scores = helper.create_variable_for_type_inference(scores.dtype, stop_gradient=True)
    parents = helper.create_variable_for_type_inference("int32", stop_gradient=True)
    inputs = {"pre_ids": [pre_ids], "pre_scores": [pre_scores], "scores": [scores]}
    if ids is not None:
        inputs["ids"] = [ids]
    helper.append_op("beam_search", inputs, {"selected_ids": [selected_ids], "selected_scores": [selected_scores],
                                             "parent_idx": [parents]},
                     {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated})
    return (selected_ids, selected_scores, parents) if return_parent_idx else (selected_ids, selected_scores)


def beam_search_decode(ids, scores, beam_size, end_id, name=None):
    """(words, scores) of all sentences that tensor arrays of selected ids and scores lead to, best first.

    The LoD of both is source -> sentences -> words.
    """
    helper = LayerHelper("beam_search_decode", name=name)
    words = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    totals = helper.create_variable_for_type_inference(scores.dtype, stop_gradient=True)
    helper.append_op("beam_search_decode", {"Ids": [ids], "Scores": [scores]},
                     {"SentenceIds": [words], "SentenceScores": [totals]}, {"beam_size": beam_size, "end_id": end_id})
    return words, totals


def gather_tree(ids, parents):
    """Whole sentences from the steps of a search, both [steps, batch, beams]."""
    out = single_op("gather_tree", {"Ids": ids, "Parents": parents})
    out.stop_gradient = True
    return out
