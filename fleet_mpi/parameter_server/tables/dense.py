"""What a server keeps of the dense variables: parameters and optimizer states as flat images, updated in place.

States lie as the parameters do, so that neighbours with the same recipe are updated in one call, whatever the
number of variables. An update goes piece by piece, as gradients arrive; where norms are needed it goes over
everything at once and asks for the sums of squares of whole variables on the way.
"""

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.arrays import aligned
from fleet_mpi.parameter_server import norms
from fleet_mpi.parameter_server.recipes import BoundNorm


class Segment:
    """Neighbouring bytes of an image, within one piece, that have the same recipe and type."""

    def __init__(self, recipe, dtype, start, stop):
        self.recipe, self.dtype, self.start, self.stop = recipe, dtype, start, stop
        self.rule = update_rules.RULES[recipe.rule]
        # Beta powers and the like: each segment has its own, so that each moves on once per update.
        self.small = {}

    def line(self, image):
        """The elements of the segment in an image of bytes."""
        return image[self.start:self.stop].view(self.dtype)


class DenseTable:
    """The dense variables of one server. ``recipes`` is {variable: Recipe}; ``rates`` {name: [1] array}."""

    def __init__(self, image, recipes, rates):
        self.image, self.recipes, self.rates = image, recipes, rates
        self.params = _zeros(image.nbytes)
        # Of the whole job: a server that needs none of them still tells the others that it has nothing to add.
        self.needs_norms = any(recipe.needs_norms for recipe in recipes.values())
        self._index = {(shard.variable, shard.block): index for index, shard in enumerate(image.shards)}
        self.segments = [self._segments_of(piece) for piece in image.pieces]
        self.states = self._new_states()
        self._scratch = {}

    def _segments_of(self, piece):
        """The segments of a piece; a variable longer than a piece gives one to each of several pieces."""
        found, merge = [], not self.needs_norms
        for index, start, stop in self.image.within(piece.start, piece.stop):
            dtype, recipe = self.image.dtypes[index], self.recipes[self.image.shards[index].variable]
            last = found[-1] if found else None
            if merge and last and last.dtype == dtype and last.recipe.key() == recipe.key() and (
                    aligned(last.stop) == start):
                last.stop = stop
            else:
                found.append(Segment(recipe, dtype, start, stop))
        return found

    def _new_states(self):
        """{state name: image of bytes}, at the rules' initial values."""
        states = {}
        for segment in self._all_segments():
            hypers = {**dict(segment.recipe.hypers)}
            known = {**segment.rule.hypers, **segment.rule.setup}
            made = segment.rule.new_states(np.empty(0, segment.dtype),
                                           **{name: value for name, value in hypers.items() if name in known})
            for state, initial in zip(segment.rule.states, made, strict=True):
                if state.like_param:
                    image = states.setdefault(state.name, _zeros(self.image.nbytes))
                    value = _initial(state, hypers, segment.rule)
                    segment.line(image)[...] = value
                else:
                    segment.small[state.name] = initial
        return states

    def _all_segments(self):
        return [segment for piece in self.segments for segment in piece]

    # ------------------------------------------------------------------ values by name, for loading and saving

    def shards(self):
        """The shards kept here."""
        return self.image.shards

    def param(self, variable, block):
        """The parameter's values of one shard: a view."""
        return self.image.view(self.params, self._index[variable, block])

    def state(self, variable, block, name):
        """A state of one shard: a view; for one number per variable a copy in [1]."""
        index = self._index[variable, block]
        if name in self.states and self._is_like_param(variable, name):
            return self.image.view(self.states[name], index)
        return self._segments_with(index)[0].small[name].copy()

    def set_state(self, variable, block, name, values):
        """Take over a state of one shard."""
        index = self._index[variable, block]
        if name in self.states and self._is_like_param(variable, name):
            self.image.view(self.states[name], index)[...] = values
        else:
            for segment in self._segments_with(index):
                segment.small[name][...] = values

    def _is_like_param(self, variable, name):
        rule = update_rules.RULES[self.recipes[variable].rule]
        return next(state.like_param for state in rule.states if state.name == name)

    def _segments_with(self, index):
        start = self.image.starts[index]
        stop = start + self.image.shards[index].size * self.image.dtypes[index].itemsize
        return [segment for segment in self._all_segments() if segment.start < stop and segment.stop > start]

    # ------------------------------------------------------------------ updating

    def bind(self, gradients):
        """The update from an image of gradients that lie in this array: a list of calls for every piece.

        The gradients are changed on the way (clipped, decayed).
        """
        return [[self._bind_segment(segment, gradients) for segment in piece] for piece in self.segments]

    def _bind_segment(self, segment, gradients):
        param, grad = segment.line(self.params), segment.line(gradients)
        step = segment.rule.bind(param, grad, self.rates[segment.recipe.rate], self._states_of(segment),
                                 **self._hypers(segment))
        if not segment.recipe.steps:
            return step
        scratch = self._scratch_like(grad)

        def prepare_and_step():
            for one in segment.recipe.steps:
                one.apply(grad, param, scratch)
            step()
        return prepare_and_step

    def _hypers(self, segment):
        return {name: value for name, value in segment.recipe.hypers if name in segment.rule.hypers}

    def _states_of(self, segment):
        return [segment.line(self.states[state.name]) if state.like_param else segment.small[state.name]
                for state in segment.rule.states]

    def _scratch_like(self, grad):
        known = self._scratch.get(grad.dtype)
        if known is None or len(known) < len(grad):
            known = self._scratch[grad.dtype] = arrays.empty(len(grad), grad.dtype)
        return known[:len(grad)]

    def update_with_norms(self, gradients):
        """The whole update where norms are needed, as a generator: see ``norms``."""
        lines = [(segment, segment.line(self.params), segment.line(gradients)) for segment in self._all_segments()]
        for position in range(norms.most_steps(self.recipes)):
            yield from self._apply_step(lines, position)
        yield from self._finish(lines)

    def _apply_step(self, lines, position):
        here = [(segment, param, grad, segment.recipe.steps[position]) for segment, param, grad in lines
                if position < len(segment.recipe.steps)]
        wanted = self._nodes([(segment, grad) for segment, _, grad, step in here if isinstance(step, BoundNorm)],
                             "gradient")
        sums = (yield wanted) if norms.asks_at(self.recipes, position) else {}
        for segment, param, grad, step in here:
            if isinstance(step, BoundNorm):
                factor = step.factor(norms.sum_for(step, self._variable_at(segment), self.recipes, sums))
                np.multiply(grad, factor.astype(grad.dtype), out=grad)
            else:
                step.apply(grad, param, self._scratch_like(grad))

    def _finish(self, lines):
        """The rules, some with the norms of whole variables."""
        measured, wanted = {}, {}
        for segment, param, grad in lines:
            if segment.rule.norms is not None:
                measured[segment] = segment.rule.norms.measure(param, grad, *self._states_of(segment),
                                                               **self._hypers(segment))
                for what, line in measured[segment].items():
                    wanted |= self._nodes([(segment, line)], what, wanted)
        sums = (yield wanted) if norms.asks_at_the_end(self.recipes) else {}
        for segment, param, grad in lines:
            self._run_rule(segment, param, grad, measured.get(segment), sums)

    def _run_rule(self, segment, param, grad, measured, sums):
        rule, rate, states = segment.rule, self.rates[segment.recipe.rate], self._states_of(segment)
        if measured is None:
            rule.run(param, grad, rate, *states, **rule.complete(self._hypers(segment)))
        else:
            squares = tuple(sums[self._variable_at(segment), what] for what in measured)
            rule.norms.step(param, measured, rate, *states, squares=squares, **self._hypers(segment))

    def _nodes(self, segments_and_lines, what, known=()):
        found = {}
        for segment, line in segments_and_lines:
            shard, start = self._shard_at(segment)
            key = shard.variable, what
            nodes = found.setdefault(key, list(known[key]) if key in known else [])
            nodes += update_rules.square_nodes(line, start)
        return found

    def _shard_at(self, segment):
        """The shard a segment lies in, and the segment's first position within the whole variable."""
        index = int(np.searchsorted(self.image.starts, segment.start, side="right")) - 1
        shard = self.image.shards[index]
        return shard, shard.offset + (segment.start - self.image.starts[index]) // segment.dtype.itemsize

    def _variable_at(self, segment):
        return self._shard_at(segment)[0].variable


def _initial(state, hypers, rule):
    if isinstance(state.initial, str):
        return {**rule.hypers, **rule.setup, **hypers}[state.initial]
    return state.initial


def _zeros(nbytes):
    image = arrays.empty(nbytes, np.uint8)
    image[...] = 0
    return image
