"""Arguments in messages: as Python writes them, and as options of the command line."""

import pytest

from dpppsynth.core.wording import add_options, either, headed, in_options, mention, named

OPTIONS = {"delta": "--delta", "sampler": "--sampler", "node": "--node", "user": "--user", "alpha": "--border-share"}


def said():
    return [
        named("delta"),
        mention("delta"),
        mention("delta", "1e-6"),
        mention("sampler", "'exact'"),
        mention("node", "True"),
        mention("user", repr("it's")),
        mention("user", repr("a b")),
        mention("rng"),
        either("AddRemove()", "--relation add-remove"),
        headed("alpha, rng: must be positive; alpha: is a word like others."),
    ]


def test_python():
    assert said() == [
        "delta",
        "delta=",
        "delta=1e-6",
        "sampler='exact'",
        "node=True",
        'user="it\'s"',
        "user='a b'",
        "rng=",
        "AddRemove()",
        "alpha, rng: must be positive; alpha: is a word like others.",
    ]


def test_options():
    with in_options(lambda: OPTIONS):
        found = said()
    assert found == [
        "--delta",
        "--delta",
        "--delta 1e-6",
        "--sampler exact",
        "--node",
        """--user 'it'"'"'s'""",
        "--user 'a b'",
        "rng=",
        "--relation add-remove",
        "--border-share, rng: must be positive; alpha: is a word like others.",
    ]
    # Outside the command line names are those of Python again.
    assert named("delta") == "delta"


def test_a_mechanism_has_options_of_its_own():
    add_options({"delta": "--never"})
    with in_options(lambda: OPTIONS):
        add_options({"spacing": "--resolution"})
        assert mention("spacing", "50.0") == "--resolution 50.0"
        with pytest.raises(KeyError), in_options(dict):
            raise KeyError
        assert named("spacing") == "--resolution"
    assert (named("spacing"), named("delta")) == ("spacing", "delta")


def test_options_are_collected_once_and_when_the_first_is_written():
    collected = []

    def collect():
        collected.append(1)
        return OPTIONS

    with in_options(collect):
        add_options({"delta": "--never"})
        assert (named("delta"), either("rng", "--seed"), collected) == ("--never", "--seed", [])
        assert (named("node"), named("user"), named("rng"), collected) == ("--node", "--user", "rng", [1])
