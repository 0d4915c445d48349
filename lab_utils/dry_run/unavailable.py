"""What is raised where something cannot be known here."""


class Unavailable(Exception):
    """This machine, or what was handed over, cannot tell it; the message says why.

    It follows on "TPU218, of training: ", or on "cannot be checked here: ".
    """
