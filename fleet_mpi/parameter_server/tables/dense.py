"""What a server keeps of the dense variables: parameters and optimizer states as flat images, updated in place.

States lie as the parameters do, so that neighbours with the same recipe are updated in one call, whatever the
number of variables. An update goes piece by piece, as gradients arrive; where norms are needed it goes over
everything at once. The image of gradients that a worker sends is not copied: calls are bound to where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.arrays import aligned
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.parameter_server.recipes import Recipe, Step
from fleet_mpi.parameter_server.tables.base import looks_of

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.flat import Piece
    from fleet_mpi.parameter_server.tables.base import Node, StateLook, Variable as KnownVariable
    from fleet_mpi.placement.placing import Placement
    from fleet_mpi.placement.shard import Shard, Variable
    from fleet_mpi.update_rules import Rule, State


class DenseDescription(NamedTuple):
    """All dense variables of a job, which lie in the flat arrays of its workers."""

    placement: Placement
    recipes: Mapping[str, Recipe]   # of these variables, and perhaps of others

    @property
    def variables(self) -> dict[str, Variable]:
        """By name."""
        return {one.name: one for one in self.placement.variables}

    def recipe_of(self, variable: str) -> Recipe:
        """How a variable is updated."""
        return self.recipes[variable]

    def states_of(self, variable: KnownVariable) -> dict[str, StateLook]:
        """The rule's."""
        return looks_of(update_rules.RULES[self.recipes[variable.name].rule].states, variable.shape, variable.dtype)

    def shards_of(self, variable: str) -> Sequence[Shard]:
        """All of a variable."""
        return self.placement.of_variable(variable)

    def table(self, server: int, rates: Mapping[str, np.ndarray]) -> DenseTable:
        """What a server keeps."""
        image = ServerImage(FlatLayout(self.placement.variables), self.placement.of_server(server))
        return DenseTable(image, self.recipes, rates)


class Segment:
    """Neighbouring bytes of an image, within one piece, that have the same recipe and type."""

    def __init__(self, recipe: Recipe, dtype: np.dtype, start: int, stop: int) -> None:
        self.recipe, self.dtype, self.start, self.stop = recipe, dtype, start, stop
        self.rule = update_rules.RULES[recipe.rule]
        # Beta powers and the like: each segment has its own, so that each moves on once per update.
        self.small: dict[str, np.ndarray] = {}

    def line(self, image: np.ndarray) -> np.ndarray:
        """The elements of the segment in an image of bytes."""
        return image[self.start:self.stop].view(self.dtype)


class Contribution:
    """An image of gradients, where it arrives again and again, and the update calls that are bound to it."""

    def __init__(self, image: np.ndarray) -> None:
        self.image = image
        self.calls: list[list[Callable[[], Any]]] | None = None


class DenseTable:
    """The dense variables of one server. ``recipes`` is {variable: Recipe}; ``rates`` {name: [1] array}."""

    def __init__(self, image: ServerImage, recipes: Mapping[str, Recipe], rates: Mapping[str, np.ndarray]) -> None:
        self.image, self.recipes, self.rates, self.columns = image, recipes, rates, None
        self.params = _zeros(image.nbytes)
        # Of variables elsewhere too: a server that needs none still tells the others that it has nothing to add.
        self.needs_norms = any(recipe.needs_norms for recipe in recipes.values())
        self._index = {(shard.variable, shard.block): index for index, shard in enumerate(image.shards)}
        self.segments = [self._segments_of(piece) for piece in image.pieces]
        self.states = self._new_states()
        self._scratch: dict[np.dtype, np.ndarray] = {}
        self._contributions: dict[int, Contribution] = {}   # by address

    def _segments_of(self, piece: Piece) -> list[Segment]:
        """The segments of a piece; a variable longer than a piece gives one to each of several pieces."""
        found: list[Segment] = []
        merge = not self.needs_norms
        for index, start, stop in self.image.within(piece.start, piece.stop):
            dtype, recipe = self.image.dtypes[index], self.recipes[self.image.shards[index].variable]
            last = found[-1] if found else None
            if merge and last and last.dtype == dtype and last.recipe.key() == recipe.key() and (
                    aligned(last.stop) == start):
                last.stop = stop
            else:
                found.append(Segment(recipe, dtype, start, stop))
        return found

    def _new_states(self) -> dict[str, np.ndarray]:
        """{state name: image of bytes}, at the rules' initial values."""
        states: dict[str, np.ndarray] = {}
        for segment in self._all_segments():
            hypers, known = dict(segment.recipe.hypers), {**segment.rule.hypers, **segment.rule.setup}
            made = segment.rule.new_states(np.empty(0, segment.dtype),
                                           **{name: value for name, value in hypers.items() if name in known})
            for state, initial in zip(segment.rule.states, made, strict=True):
                if state.like_param:
                    image = states.setdefault(state.name, _zeros(self.image.nbytes))
                    segment.line(image)[...] = _initial(state, hypers, segment.rule)
                else:
                    segment.small[state.name] = initial
        return states

    def _all_segments(self) -> list[Segment]:
        return [segment for piece in self.segments for segment in piece]

    # ------------------------------------------------------------------ what travels: always everything

    def push_bytes(self, count: int = 0) -> int:
        """The length of the image."""
        return self.image.nbytes

    def read(self, body: np.ndarray, count: int = 0) -> Contribution:
        """The same for the same place: bound calls are kept, and with them the memory there."""
        address = body.__array_interface__["data"][0]
        known = self._contributions.get(address)
        if known is None:
            known = self._contributions[address] = Contribution(body)
        return known

    answer_bytes = push_bytes

    def answer(self, ids: np.ndarray, out: np.ndarray) -> None:
        """The parameters as they are."""
        out[...] = self.params

    # ------------------------------------------------------------------ values by name, for loading and saving

    def shards(self) -> Sequence[Shard]:
        """The shards kept here."""
        return self.image.shards

    def param(self, variable: str, block: int) -> np.ndarray:
        """The parameter's values of one shard: a view."""
        return self.image.view(self.params, self._index[variable, block])

    def state(self, variable: str, block: int, name: str) -> np.ndarray:
        """A state of one shard: a view; for one number per variable a copy in [1]."""
        index = self._index[variable, block]
        if name in self.states and self._is_like_param(variable, name):
            return self.image.view(self.states[name], index)
        return self._segments_with(index)[0].small[name].copy()

    def set_state(self, variable: str, block: int, name: str, values: np.ndarray) -> None:
        """Take over a state of one shard."""
        index = self._index[variable, block]
        if name in self.states and self._is_like_param(variable, name):
            self.image.view(self.states[name], index)[...] = values
        else:
            for segment in self._segments_with(index):
                segment.small[name][...] = values

    def _is_like_param(self, variable: str, name: str) -> bool:
        rule = update_rules.RULES[self.recipes[variable].rule]
        return next(state.like_param for state in rule.states if state.name == name)

    def _segments_with(self, index: int) -> list[Segment]:
        start = self.image.starts[index]
        stop = start + self.image.shards[index].size * self.image.dtypes[index].itemsize
        return [segment for segment in self._all_segments() if segment.start < stop and segment.stop > start]

    # ------------------------------------------------------------------ updating

    def update(self, contributions: Sequence[Contribution]) -> None:
        """All pieces, one after the other."""
        for number in range(len(self.segments)):
            self.update_piece(contributions, number)

    def update_piece(self, contributions: Sequence[Contribution], number: int) -> None:
        """Update one piece by the mean of what is there of it. The first contribution is changed on the way."""
        self._average(contributions, number)
        first = contributions[0]
        if first.calls is None:
            first.calls = [[self._bind_segment(segment, first.image) for segment in piece] for piece in self.segments]
        for call in first.calls[number]:
            call()

    def _average(self, contributions: Sequence[Contribution], number: int) -> None:
        if len(contributions) > 1:
            average([one.image for one in contributions], self.image.ranges[number])

    def _bind_segment(self, segment: Segment, gradients: np.ndarray) -> Callable[[], Any]:
        param, grad = segment.line(self.params), segment.line(gradients)
        step = segment.rule.bind(param, grad, self.rates[segment.recipe.rate], self.states_of(segment),
                                 **self.hypers_of(segment))
        if not segment.recipe.steps:
            return step
        steps: Any = segment.recipe.steps   # none of them a BoundNorm: where there is one, ``gradients`` are asked for
        scratch = self.scratch_like(grad)

        def prepare_and_step() -> None:
            for one in steps:
                one.apply(grad, param, scratch)
            step()
        return prepare_and_step

    def hypers_of(self, segment: Segment) -> dict[str, Any]:
        """The settings that the recipe gives the rule."""
        return {name: value for name, value in segment.recipe.hypers if name in segment.rule.hypers}

    def states_of(self, segment: Segment) -> list[np.ndarray]:
        """The arrays of the rule's states."""
        return [segment.line(self.states[state.name]) if state.like_param else segment.small[state.name]
                for state in segment.rule.states]

    def scratch_like(self, grad: np.ndarray) -> np.ndarray:
        """Memory as long as a gradient, for the moment."""
        known = self._scratch.get(grad.dtype)
        if known is None or len(known) < len(grad):
            known = self._scratch[grad.dtype] = arrays.empty(len(grad), grad.dtype)
        return known[:len(grad)]

    def gradients(self, contributions: Sequence[Contribution]) -> list[SegmentGradient]:
        """The mean of the contributions, segment by segment."""
        for number in range(len(self.segments)):
            self._average(contributions, number)
        return [SegmentGradient(self, segment, contributions[0].image) for segment in self._all_segments()]

    def variable_at(self, segment: Segment) -> tuple[str, int]:
        """The variable that a segment lies in, and the segment's first position within the whole of it."""
        index = int(np.searchsorted(self.image.starts, segment.start, side="right")) - 1
        shard = self.image.shards[index]
        return shard.variable, shard.offset + (segment.start - self.image.starts[index]) // segment.dtype.itemsize


class SegmentGradient:
    """The gradient of one segment on its way through its recipe."""

    def __init__(self, table: DenseTable, segment: Segment, image: np.ndarray) -> None:
        self.table, self.rule, self.recipe = table, segment.rule, segment.recipe
        self.variable, self.start = table.variable_at(segment)
        self.param, self.grad = segment.line(table.params), segment.line(image)
        self.states, self.hypers = table.states_of(segment), table.hypers_of(segment)
        self.measured: dict[str, np.ndarray] = {}

    def apply(self, step: Step) -> None:
        """In place."""
        step.apply(self.grad, self.param, self.table.scratch_like(self.grad))

    def scale(self, factor: np.ndarray) -> None:
        """In place."""
        np.multiply(self.grad, factor.astype(self.grad.dtype), out=self.grad)

    def nodes(self) -> list[Node]:
        """Of the gradient."""
        return update_rules.square_nodes(self.grad, self.start)

    def measure(self) -> dict[str, list[Node]]:
        """What the rule's norms are of."""
        if self.rule.norms is not None:
            self.measured = self.rule.norms.measure(self.param, self.grad, *self.states, **self.hypers)
        return {what: update_rules.square_nodes(line, self.start) for what, line in self.measured.items()}

    def finish(self, squares: tuple[np.ndarray, ...]) -> None:
        """Run the rule."""
        rate = self.table.rates[self.recipe.rate]
        if self.rule.norms is None:
            self.rule.run(self.param, self.grad, rate, *self.states, **self.rule.complete(self.hypers))
        else:
            self.rule.norms.step(self.param, self.measured, rate, *self.states, squares=squares, **self.hypers)


def average(images: Sequence[np.ndarray], ranges: Iterable[tuple[int, int, np.dtype]]) -> None:
    """Ranges (start, stop, dtype) of the first image become the mean: summed in order, then times 1/n."""
    for begin, end, dtype in ranges:
        total = images[0][begin:end].view(dtype)
        for image in images[1:]:
            np.add(total, image[begin:end].view(dtype), out=total)
        np.multiply(total, 1.0 / len(images), out=total)


def _initial(state: State, hypers: Mapping[str, Any], rule: Rule) -> Any:
    if isinstance(state.initial, str):
        return {**rule.hypers, **rule.setup, **hypers}[state.initial]
    return state.initial


def _zeros(nbytes: int) -> np.ndarray:
    image = arrays.empty(nbytes, np.uint8)
    image[...] = 0
    return image
