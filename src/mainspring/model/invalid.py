"""The error of a value that breaks a rule, in the same words wherever it was given."""

from __future__ import annotations

from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted


def invalid(name: str, value: object, rule: str, hint: str | None = None) -> InvalidInput:
    """`name` is what people call it; `rule` goes on after "it": `must be True or False`."""
    return InvalidInput(
        f"{name} is {quoted(value)}; it {rule}.",
        code=f"invalid-{name.strip('_').replace('_', '-')}",
        hint=hint,
        field=name,
        value=quoted(value),
        rule=rule,
    )


def say_which(error: InvalidInput, which: str, **fields: object) -> None:
    """Let an error about one of many say which: `Item 3: …`."""
    error.message = f"{which}: {error.message}"
    error.fields |= fields
