"""The directives ``.. measured:: FILE`` and ``.. plot-of:: FILE``: table and plots of ``docs/figures/FILE.json``.

A file says what was measured, by which command, on what and how; ``columns`` name the cells of its ``rows``. ``plots``
choose columns: bars side by side for every row that has them all. A plot is drawn for light and dark pages, wide and
narrow ones. With ``:if-measured:`` a file may be missing: nothing is shown then.
"""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

FIGURES = Path(__file__).parents[1] / "figures"
COLOURS = ("#2a7fb8", "#8c9aa6", "#d98324", "#4f9d69")
INK = {"light": "#222832", "dark": "#d5dae0"}
INCHES = {"wide": 7.5, "narrow": 4.2}   # of text that is read at its own size
LETTERS_AN_INCH = 11


class Figure(float):
    """A number that keeps the digits that it was written with."""

    def __new__(cls, text: str) -> Figure:
        """The number of a text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def figures(name: str) -> dict[str, Any]:
    """What was measured under a name."""
    return json.loads((FIGURES / f"{name}.json").read_text(), parse_float=Figure)


def table_of(name: str) -> str:
    """The figures as a table, with what was measured above it and how below it."""
    found = figures(name)
    shown = [number for number, column in enumerate(found["columns"]) if column not in found.get("hidden", ())]
    # No caption of the table: one is as wide as the table, and cut where that scrolls.
    lines = [".. rst-class:: of-measured", "", found["title"], "",
             ".. list-table::", "   :header-rows: 1", "   :class: measured", ""]
    for row in [found["columns"], *found["rows"]]:
        lines += [f"   {'*' if number == 0 else ' '} - {_cell(row[number])}" for number in shown]
    how = [f"Command: ``{found['command']}``."] if found["command"] else []
    return "\n".join([*lines, "", " ".join((*how, found["machine"], found["how"])), ""])


def _cell(cell: Any) -> str:
    """A cell as its file has it: no digit more, none less."""
    return f"{cell:,}" if isinstance(cell, int) else cell.text if isinstance(cell, Figure) else str(cell or "")


def _note(env: BuildEnvironment, name: str) -> None:
    """Let the page be read anew when the figures or this file change."""
    for path in (FIGURES / f"{name}.json", Path(__file__)):
        env.note_dependency(str(path))


class _OfFigures(SphinxDirective):
    """What a page shows of a file of figures."""

    required_arguments = 1
    option_spec = {"if-measured": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The nodes of its text; none where the file may be missing, and is."""
        name = self.arguments[0]
        _note(self.env, name)
        if "if-measured" in self.options and not (FIGURES / f"{name}.json").exists():
            return []
        return self.parse_text_to_nodes(self.text(name))

    def text(self, name: str) -> str:
        """What is shown, in reStructuredText."""
        raise NotImplementedError


class Measured(_OfFigures):
    """The table of a file of figures."""

    def text(self, name: str) -> str:
        """The table."""
        return table_of(name)


class PlotOf(_OfFigures):
    """The plots of a file of figures."""

    def text(self, name: str) -> str:
        """Four images for every plot, of which the page shows one."""
        folder = Path(self.env.doctreedir, "plots")  # nothing is written beside the sources
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for number, plot in enumerate(figures(name)["plots"]):
            for width in INCHES:
                made.append(f".. container:: only-{width}\n")
                for page in INK:
                    path = folder / f"{name}_{number}_{width}_{page}.svg"
                    draw(figures(name), plot, page, width, path)
                    made.append(f"   .. image:: /{os.path.relpath(path, self.env.srcdir)}\n"
                                f"      :class: only-{page}\n      :alt: {plot['title']}\n")
        return "\n".join(made)


def draw(found: dict[str, Any], plot: dict[str, Any], page: str, width: str, path: Path) -> None:
    """Bars of some columns, side by side for every row, as a transparent SVG file."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    columns = [found["columns"].index(name) for name in plot["columns"]]
    rows = [row for row in found["rows"] if all(row[column] is not None for column in columns)][plot.get("from", 0):]
    named = found["columns"].index(plot["rows"]) if "rows" in plot else 0
    ink, title = INK[page], textwrap.fill(plot["title"], int(INCHES[width] * LETTERS_AN_INCH))
    # The same bytes at every build.
    settings = {"svg.hashsalt": path.stem, "font.size": 10, "svg.fonttype": "path", "axes.edgecolor": ink,
                "axes.labelcolor": ink, "text.color": ink, "xtick.color": ink, "ytick.color": ink}
    with pyplot.rc_context(settings):
        inches = INCHES[width], 0.5 + 0.17 * title.count("\n") + 0.22 * len(rows) * (len(columns) + 1)
        figure, axes = pyplot.subplots(figsize=inches, layout="constrained")
        height = 0.8 / len(columns)
        for number, column in enumerate(columns):
            places = [place + (number - (len(columns) - 1) / 2) * height for place in range(len(rows))]
            bars = axes.barh(places, [row[column] for row in rows], height, color=COLOURS[number],
                             label=plot["columns"][number])
            axes.bar_label(bars, fmt="{:,.6g}", padding=3, fontsize=8)
        axes.set_yticks(range(len(rows)), [str(row[named]) for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel(plot["unit"])
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.1)
        if "line" in plot:
            axes.axvline(plot["line"], color=ink, linewidth=0.8, linestyle="--")
        if len(columns) > 1:
            axes.legend(frameon=False, fontsize=8, loc="best")
        figure.savefig(path, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("measured", Measured)
    app.add_directive("plot-of", PlotOf)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
