"""Layer: what the classes of ``paddle.nn`` are made of, inside a static program.

A layer makes its parameters once, when it is made, and uses them at every call; a call adds ops to the default
program. It holds no values: those are in the scope.
"""

import re

import numpy as np

from fleet_mpi import notices
from fleet_mpi.errors import NotBuilt, UnknownName, UsageError, nearest
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.variable import Parameter, Variable
from fleet_mpi.program.layers.layer_hooks import Hooks
from fleet_mpi.program.layers.tensor import assign


class Layer:
    """Base of all; a subclass makes parameters and sublayers in ``__init__`` and uses them in ``forward``."""

    def __init__(self, name_scope=None, dtype="float32"):
        self.__dict__.update(_parameters={}, _sub_layers={}, _buffers={}, _not_in_state=set(), training=True,
                             _forward_pre_hooks=Hooks(), _forward_post_hooks=Hooks())
        self._dtype = dtype
        self._full_name = unique_name.generate(name_scope or _snake(type(self).__name__))

    def __call__(self, *inputs, **kwargs):
        for hook in self._forward_pre_hooks:
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in self._forward_post_hooks:
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def forward(self, *inputs, **kwargs):
        """Add this layer's ops for these inputs; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(self, ...)")

    def register_forward_pre_hook(self, hook):
        """Call ``hook(layer, inputs)`` before every forward; what it returns, if anything, are the inputs instead.

        Returns a handle whose ``remove()`` ends it.
        """
        return self._forward_pre_hooks.register(hook)

    def register_forward_post_hook(self, hook):
        """Call ``hook(layer, inputs, outputs)`` after every forward; what it returns, if anything, is the output.

        Returns a handle whose ``remove()`` ends it.
        """
        return self._forward_post_hooks.register(hook)

    def full_name(self):
        """The name that parameters begin with, ``linear_0``."""
        return self._full_name

    def create_parameter(self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None):
        """A parameter ``<full name>.w_0`` (``.b_0``), or None where the attribute is False."""
        helper = LayerHelper(self._full_name, name=self._full_name)
        return helper.create_parameter(attr, shape, dtype or self._dtype, is_bias, default_initializer)

    def create_variable(self, name=None, persistable=None, dtype=None):
        """A variable of the default program without a shape yet, named after the layer unless it has a name."""
        return default_main_program().current_block().create_var(
            name=name or unique_name.generate(f"{self._full_name}._generated_var"), dtype=dtype or self._dtype,
            persistable=bool(persistable))

    create_tensor = create_variable

    def add_parameter(self, name, parameter):
        """Enter a parameter under a name; returns it."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise UsageError(f"add_parameter: expected a Parameter, got {type(parameter).__name__}")
        self._parameters[name] = parameter
        return parameter

    def add_sublayer(self, name, sublayer):
        """Enter a layer under a name; returns it."""
        if not isinstance(sublayer, Layer):
            raise UsageError(f"add_sublayer: expected a Layer, got {type(sublayer).__name__}")
        self._sub_layers[name] = sublayer
        return sublayer

    def register_buffer(self, name, tensor, persistable=True):
        """Enter a variable that is no parameter but belongs to the layer; to its state, if it is ``persistable``."""
        self._buffers[name] = tensor
        self._not_in_state = self._not_in_state - {name} if persistable else self._not_in_state | {name}
        return tensor

    def __setattr__(self, name, value):
        for kind, held in ((Parameter, self._parameters), (Layer, self._sub_layers)):
            if isinstance(value, kind):
                self.__dict__.pop(name, None)
                held[name] = value
                return
            held.pop(name, None)
        if name in self._buffers:
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value):
        """A new value for a buffer: where it has one, an op of the program writes it, as in the original."""
        if isinstance(value, Variable) and isinstance(self._buffers[name], Variable):
            assign(value, self._buffers[name])
        else:
            self._buffers[name] = value

    def __getattr__(self, name):
        held = {**self.__dict__.get("_parameters", {}), **self.__dict__.get("_sub_layers", {}),
                **self.__dict__.get("_buffers", {})}
        if name in held:
            return held[name]
        if "_full_name" not in self.__dict__ and not name.startswith("__"):
            raise UsageError(f"{type(self).__name__}: call super().__init__() first")
        raise UnknownName(f"{type(self).__name__} has no {name!r}; {nearest(name, [*held, *dir(type(self))])}")

    def __delattr__(self, name):
        for held in (self._parameters, self._sub_layers, self._buffers):
            if held.pop(name, None) is not None:
                return
        object.__delattr__(self, name)

    def named_sublayers(self, prefix="", include_self=False, layers_set=None):
        """(path, layer) of all layers below, each once; ``layers_set``: layers to leave out."""
        seen = {id(layer) for layer in layers_set or ()}
        for path, layer in self._walk(prefix):
            if id(layer) not in seen and (include_self or layer is not self):
                yield path, layer
            seen.add(id(layer))

    def _walk(self, path):
        yield path, self
        for name, layer in self._sub_layers.items():
            yield from layer._walk(f"{path}.{name}" if path else name)

    def sublayers(self, include_self=False):
        """All layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_children(self):
        """(name, layer) of the layers directly below, each once."""
        seen = set()
        for name, layer in self._sub_layers.items():
            if id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def children(self):
        """The layers directly below, each once."""
        return (layer for _, layer in self.named_children())

    def named_parameters(self, prefix="", include_sublayers=True):
        """(path, parameter), each parameter once."""
        return self._named("_parameters", prefix, include_sublayers)

    def named_buffers(self, prefix="", include_sublayers=True):
        """(path, variable) of the state that is no parameter."""
        return self._named("_buffers", prefix, include_sublayers)

    def _named(self, kind, prefix, include_sublayers):
        layers = self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]
        seen = set()
        for path, layer in layers:
            for name, held in layer.__dict__[kind].items():
                if held is not None and held.name not in seen:
                    seen.add(held.name)
                    yield (f"{path}.{name}" if path else name), held

    def parameters(self, include_sublayers=True):
        """All parameters."""
        return [param for _, param in self.named_parameters(include_sublayers=include_sublayers)]

    def buffers(self, include_sublayers=True):
        """All variables of the state that are no parameters."""
        return [held for _, held in self.named_buffers(include_sublayers=include_sublayers)]

    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix=""):
        """{path: tensor} of parameters and buffers, as they stand in the global scope."""
        found = destination if destination is not None else {}
        for path, var in self._state(include_sublayers):
            found[structured_name_prefix + path] = _tensor(var)
        return found

    def to_static_state_dict(self, destination=None, include_sublayers=True, structured_name_prefix=""):
        """As ``state_dict``, with the buffers that are kept out of it."""
        found = self.state_dict(destination, include_sublayers, structured_name_prefix)
        for path, var in self.named_buffers(include_sublayers=include_sublayers):
            found[structured_name_prefix + path] = _tensor(var)
        return found

    def set_state_dict(self, state_dict, include_sublayers=True, use_structured_name=True):
        """Take values over by path (or by variable name) into the global scope.

        What is missing or has another shape is passed over with a warning, as the original does: the value stays.
        """
        wanted = {path if use_structured_name else var.name: var for path, var in self._state(include_sublayers)}
        for name, var in wanted.items():
            found = np.asarray(state_dict[name]).shape if name in state_dict else None
            if found is None:
                notices.log().warning("%s: the state given has no %r: its value stays", self._full_name, name)
            elif found != tuple(var.shape):
                notices.log().warning("%s: %r is %s in the state given, expected %s: its value stays",
                                      self._full_name, name, list(found), list(var.shape))
            else:
                _tensor(var).set(np.asarray(state_dict[name]).astype(var._dtype))

    set_dict = load_dict = set_state_dict

    def _state(self, include_sublayers):
        yield from self.named_parameters(include_sublayers=include_sublayers)
        without = {id(layer._buffers.get(name)) for layer in (self, *self.sublayers()) for name in layer._not_in_state}
        yield from ((path, held) for path, held in self.named_buffers(include_sublayers=include_sublayers)
                    if id(held) not in without)

    def train(self):
        """Calls from now on are for training: dropout drops, batch norm takes the batch's moments."""
        self._set_training(True)

    def eval(self):
        """Calls from now on are for inference."""
        self._set_training(False)

    def _set_training(self, training):
        for layer in self.sublayers(include_self=True):
            layer.training = training

    def apply(self, fn):
        """Call ``fn(layer)`` for every layer, from the bottom up; returns this one."""
        for layer in reversed(self.sublayers(include_self=True)):
            fn(layer)
        return self

    def clear_gradients(self):
        """Nothing: a run of a program computes its gradients anew."""

    def backward(self, *inputs):
        """Refuse: gradients are ops of the program."""
        raise NotBuilt("Layer.backward: there is no eager mode; optimizer.minimize(loss) adds the backward ops")

    def extra_repr(self):
        """For subclasses: words between the brackets of the printed layer."""
        return ""

    def __repr__(self):
        inner = [f"  ({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        return f"{type(self).__name__}({self.extra_repr()}" + ("\n" + "\n".join(inner) + "\n)" if inner else ")")


def _tensor(var):
    """The tensor of a variable in the global scope."""
    if not isinstance(var, Variable):
        raise UsageError(f"a layer's state holds variables of the program, got {type(var).__name__}")
    return global_scope().var(var.name).get_tensor()


def _snake(name):
    """``BatchNorm2D`` -> ``batch_norm2d``."""
    return re.sub(r"(?<=.)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", name).lower()
