"""Layers that hold others, or parameters, in order: ``Sequential``, ``LayerList``, ``ParameterList``."""

from fleet_mpi.program.layers.layer import Layer


class Sequential(Layer):
    """Layers one after the other; given as layers, or as (name, layer) pairs."""

    def __init__(self, *layers):
        super().__init__()
        for i, one in enumerate(layers):
            name, layer = one if isinstance(one, (tuple, list)) else (str(i), one)
            self.add_sublayer(str(name), layer)

    def forward(self, input):
        """The last layer's output."""
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(*list(self._sub_layers.items())[index])
        return self._sub_layers[_name_at(self._sub_layers, index)]

    def __setitem__(self, index, layer):
        self.add_sublayer(_name_at(self._sub_layers, index), layer)

    def __delitem__(self, index):
        del self._sub_layers[_name_at(self._sub_layers, index)]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(list(self._sub_layers.values()))


def _name_at(held, index):
    """The name of what is at an index; a name stands for itself."""
    return index if isinstance(index, str) else list(held)[index]


class LayerList(Layer):
    """A list of layers, registered with the layer that holds it."""

    def __init__(self, sublayers=None):
        super().__init__()
        self.extend(sublayers or ())

    def append(self, sublayer):
        """Add a layer at the end."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def extend(self, sublayers):
        """Add several layers at the end."""
        for layer in sublayers:
            self.append(layer)
        return self

    def insert(self, index, sublayer):
        """Add a layer before the one at ``index``."""
        layers = list(self)
        layers.insert(index, sublayer)
        self._hold(layers)

    def _hold(self, layers):
        self._sub_layers.clear()
        self.extend(layers)

    def __getitem__(self, index):
        found = list(self._sub_layers.values())[index]
        return type(self)(found) if isinstance(index, slice) else found

    def __setitem__(self, index, sublayer):
        self.add_sublayer(_name_at(self._sub_layers, index), sublayer)

    def __delitem__(self, index):
        layers = list(self)
        del layers[index]
        self._hold(layers)

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(list(self._sub_layers.values()))


class ParameterList(Layer):
    """A list of parameters, registered with the layer that holds it."""

    def __init__(self, parameters=None):
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def append(self, parameter):
        """Add a parameter at the end."""
        self.add_parameter(str(len(self)), parameter)
        return self

    def __getitem__(self, index):
        return list(self._parameters.values())[index]

    def __setitem__(self, index, parameter):
        self.add_parameter(list(self._parameters)[index], parameter)

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(list(self._parameters.values()))
