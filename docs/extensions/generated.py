"""The directive ``.. generated:: TABLE``: a table of the package, as it is when the page is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tables
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


class Generated(SphinxDirective):
    """One of ``tables.TABLES``, by name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table's nodes; the page depends on the whole package, so it is always read anew."""
        self.env.note_reread()
        return self.parse_text_to_nodes(tables.TABLES[self.arguments[0]]())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
