"""Norms of whole variables within updates: who asks for them when, the same on every server of a job.

An update that needs norms is a generator. It yields {(variable, what): nodes of the tree of squares} and is sent
{(variable, what): sum, [1] float64} of the whole variables. All updates of a job yield equally often, as the job's
recipes tell, whether or not they have anything to ask for: so servers, and tables within a server, stay in step.
"""

from fleet_mpi.parameter_server.recipes import BoundNorm
from fleet_mpi.update_rules import RULES


def most_steps(recipes):
    """How many steps the longest of the job's recipes ({variable: Recipe}) has."""
    return max((len(recipe.steps) for recipe in recipes.values()), default=0)


def asks_at(recipes, position):
    """Whether any variable of the job, here or elsewhere, has a norm at this step: all servers ask or none."""
    return any(position < len(recipe.steps) and isinstance(recipe.steps[position], BoundNorm)
               for recipe in recipes.values())


def asks_at_the_end(recipes):
    """Whether any rule of the job takes norms."""
    return any(RULES[recipe.rule].norms is not None for recipe in recipes.values())


def sum_for(step, variable, recipes, sums):
    """The sum of squares that a BoundNorm of a variable is about: its own, or that of its group in order of names."""
    if not step.group:
        return sums[variable, "gradient"]
    if step not in sums:   # once for all variables of the group
        names = sorted(name for name, recipe in recipes.items() if step in recipe.steps)
        total = sums[names[0], "gradient"]
        for name in names[1:]:
            total = total + sums[name, "gradient"]
        sums[step] = total
    return sums[step]


def together(updates):
    """Several updates as one."""
    sums, updates = None, list(updates)
    while updates:
        asked = {}
        for update in list(updates):
            try:
                asked |= update.send(sums)
            except StopIteration:
                updates.remove(update)
        if updates:
            sums = yield asked
