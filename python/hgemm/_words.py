# SPDX-License-Identifier: MIT
"""What exceptions say of the arguments that a caller wrote."""
import re


def shown(value):
    """A value, in a line."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # of an integer that is too long for Python to write
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"a {kind(value)}"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def kind(value):
    """The name of a value's type."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


_MENTIONS = re.compile("(^|, and |with |^scale_[ab]: )(a|b)(?=:|'s | is | has )")


def renamed(error, **names):
    """Has an error speak of the arguments that the caller gave: `names` has those that a and b were. In a message an argument stands first, or
    after one of the words above."""
    if error.args and isinstance(error.args[0], str):
        error.args = _MENTIONS.sub(lambda found: found[1] + names[found[2]], error.args[0]), *error.args[1:]


def of_linear(error, x, weight):
    """Has an error of a product of a and b speak of linear's x and weight."""
    shapes = [tuple(getattr(array, "shape", ())) for array in (x, weight)]
    if all(shapes) and shapes[0][-1] != shapes[1][-1] and str(error).startswith("b: it has "):
        error.args = f"weight: it has {shapes[1][-1]} in features, and x has {shapes[0][-1]} (shapes {shapes[1]} and {shapes[0]})",
    renamed(error, a="x", b="weight")
    error.args = re.sub(r"^\w+\(\) got", "linear() got", str(error)), *error.args[1:]


def is_one_of(value, *choices):
    """Whether a value is one of some: of anything, such as an array, whose == is no answer."""
    return any(value is choice or type(value) is type(choice) and bool(value == choice) for choice in choices)
