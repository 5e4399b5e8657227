"""A block as a graph in Graphviz's language: ops are diamonds, what persists is a box."""


def graph_lines(block, highlights=()):
    """Yield the lines of a graph of a block's ops and variables; some variables may be coloured."""
    yield "digraph program {"
    for name, var in sorted(block.vars.items()):
        colour = ", style=filled, fillcolor=yellow" if name in highlights else ""
        yield f'  "{name}" [shape={"box" if var.persistable else "ellipse"}{colour}];'
    for number, op in enumerate(block.ops):
        yield f'  "op {number}" [label="{op.type}", shape=diamond];'
        yield from (f'  "{name}" -> "op {number}";' for name in op.input_arg_names)
        yield from (f'  "op {number}" -> "{name}";' for name in op.output_arg_names)
    yield "}\n"
