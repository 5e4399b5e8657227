"""What all transpilers do with ops: add those that only the run-time knows, and tell backward passes apart."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR, SCOPE, Operator
from fleet_mpi.program.graph.types import Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fleet_mpi.program.graph.block import Block
    from fleet_mpi.program.graph.program import Program


def communicating(block: Block, type: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any],
                  attrs: Mapping[str, Any]) -> Operator:
    """An op that moves values between ranks. No shape rule is asked about it: the table of ops need not know it yet."""
    return Operator(block, type, inputs, outputs, {ROLE: int(Role.RPC), **attrs})


def backward_digest(program: Program) -> str:
    """The ops that make gradients, in order: ranks that build another network differ here, metrics aside."""
    types = [op.type for op in program.global_block().ops if op.role & Role.Backward]
    return f"{len(types)} ops with digest {hashlib.sha256(' '.join(types).encode()).hexdigest()[:16]}"


def update_texts(program: Program) -> dict[str, str]:
    """{what an op of the updates writes first: the op, its settings and what it reads}: names how optimizers differ."""
    return {next(iter(op.output_arg_names), op.type): _text(op)
            for block in program.blocks for op in block.ops if op.role & (Role.Optimize | Role.LRSched)}


def _text(op):
    settings = ", ".join(f"{name}={value!r}" for name, value in sorted(op.attrs.items())
                         if name not in (ROLE, ROLE_VAR, SCOPE))
    return f"{op.type}({settings}) of {', '.join(op.input_arg_names)}"
