"""Curves of costs while a notebook trains."""

import os
import sys

from fleet_mpi.errors import UnknownName, nearest


class PlotData:
    """The steps and values of one curve."""

    def __init__(self):
        self.reset()

    def append(self, step, value):
        """Add a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self):
        """Forget all points."""
        self.step, self.value = [], []


class Ploter:
    """Curves by title; drawn with matplotlib, unless it is missing or DISABLE_PLOT is True: then they are only kept."""

    def __init__(self, *args):
        self.__args__ = args
        self.__plot_data__ = {title: PlotData() for title in args}

    def append(self, title, step, value):
        """Add a point to the curve of this title."""
        if title not in self.__plot_data__:
            raise UnknownName(f"Ploter.append: no curve has the title {title!r}; {nearest(title, self.__args__)}")
        self.__plot_data__[title].append(step, value)

    def plot(self, path=None):
        """Draw all curves that have points, into a file or (in a notebook) below the cell."""
        pyplot = _pyplot(path is not None)
        if pyplot is None:
            return
        drawn = [title for title in self.__args__ if self.__plot_data__[title].step]
        for title in drawn:
            pyplot.plot(self.__plot_data__[title].step, self.__plot_data__[title].value)
        pyplot.legend(drawn, loc="upper left")
        _show(pyplot, path)
        pyplot.gcf().clear()

    def reset(self):
        """Forget all points."""
        for one in self.__plot_data__.values():
            one.reset()


def _pyplot(into_file):
    """matplotlib's pyplot, or None where nothing is to be drawn."""
    if os.environ.get("DISABLE_PLOT") == "True":
        return None
    try:
        import matplotlib
    except ImportError:
        return None
    if into_file:
        matplotlib.use("Agg")  # no display is needed for a file
    from matplotlib import pyplot
    return pyplot


def _show(pyplot, path):
    if path is not None:
        pyplot.savefig(path)
        return
    notebook = sys.modules.get("IPython")  # a notebook has imported it
    if notebook is not None:
        notebook.display.clear_output(wait=True)
        notebook.display.display(pyplot.gcf())
