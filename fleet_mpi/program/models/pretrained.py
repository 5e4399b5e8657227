"""Refuses weights that would have to be fetched."""

from fleet_mpi.errors import NotBuilt


def refuse(name, pretrained):
    """Raise NotBuilt where ``pretrained`` is asked for."""
    if pretrained:
        raise NotBuilt(f"{name}(pretrained=True): nothing is fetched from the network, so there are no pretrained "
                       f"weights; use pretrained=False, and set_state_dict with a state of your own")
