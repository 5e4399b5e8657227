"""What two ranks believe of their job, compared."""

from fleet_mpi.parameter_server.agreement import LONGEST, compact, difference


def test_equal_beliefs_have_no_difference():
    assert difference({"mode": "sync", "variable": {"w": "[4]"}}, {"variable": {"w": "[4]"}, "mode": "sync"}) == ""
    assert difference(None, {}) == ""


def test_a_variable_that_differs_or_is_missing_is_named():
    worker, server = {"variable": {"w": "float32 [4, 2]"}}, {"variable": {"w": "float32 [4, 1]", "b": "float32 [1]"}}
    assert difference(worker, server) == (
        "b (variable) is None with the worker and float32 [1] with the server; "
        "w (variable) is float32 [4, 2] with the worker and float32 [4, 1] with the server")


def test_what_only_one_side_knows_differs():
    assert difference({"rows": 3}, {"mode": "geo"}) == (
        "mode is None with the worker and geo with the server; rows is 3 with the worker and None with the server")


def test_of_many_differences_some_are_named_and_the_others_counted():
    assert difference({"w": {str(n): "a" for n in range(5)}}, {"w": {}}).endswith("; and 2 more")


def test_of_long_texts_the_part_that_differs_is_shown():
    text = difference({"update": "x" * 500 + "sgd"}, {"update": "x" * 500 + "adam"})
    assert text == f"update is ...{'x' * 20}sgd with the worker and ...{'x' * 20}adam with the server"


def test_values_too_long_for_a_message_are_replaced_and_still_told_apart():
    many = {f"w{n}": "float32 [1]" for n in range(LONGEST // 10)}
    short = compact({"mode": "sync", "variable": many})
    assert short["mode"] == "sync" and len(short["variable"]) < 100
    assert short == compact({"mode": "sync", "variable": dict(reversed(many.items()))})
    assert difference(short, compact({"mode": "sync", "variable": {**many, "w0": "float32 [2]"}}))
