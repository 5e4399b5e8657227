"""What all transpilers do with ops: add those that only the run-time knows, and tell backward passes apart."""

import hashlib

from fleet_mpi.program.operator import ROLE, Operator
from fleet_mpi.program.types import Role


def communicating(block, type, inputs, outputs, attrs):
    """An op that moves values between ranks. No shape rule is asked about it: the table of ops need not know it yet."""
    return Operator(block, type, inputs, outputs, {ROLE: int(Role.RPC), **attrs})


def backward_digest(program):
    """The ops that make gradients, in order: ranks that build another network differ here, metrics aside."""
    types = [op.type for op in program.global_block().ops if op.role & Role.Backward]
    return f"{len(types)} ops with digest {hashlib.sha256(' '.join(types).encode()).hexdigest()[:16]}"
