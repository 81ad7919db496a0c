"""`Confidential`: the mark of what stays with the owner of the data."""


class Confidential:
    """Base of classes whose objects depend on sensitive points: nothing that is released leads to one of them."""
