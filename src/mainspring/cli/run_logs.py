"""`mainspring run logs`: what a run logged, attempt by attempt."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import Flag, InSession, command
from mainspring.cli.log_lines import LinePrinter
from mainspring.cli.session import Session
from mainspring.cli.text import as_json
from mainspring.errors import InvalidInput
from mainspring.model.report import LogLine


@command("logs")
async def logs(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    attempt: Annotated[int | None, Parameter(help="Only lines of the tries with this number.")] = None,
    follow: Annotated[bool, Flag, Parameter(help="Go on until the run has ended.")] = False,
    session: InSession,
) -> None:
    """Show what a run logged.

    Lines of Python's logging, of context.log, and what an isolated run printed.

    Examples:
      mainspring run logs ID
      mainspring run logs ID --attempt 2
      mainspring run logs ID --follow -o json     one JSON document a line
    """
    if attempt is not None and not 0 <= attempt < 2**31:
        raise InvalidInput(
            f"--attempt is {attempt}; it must be the number of an attempt.", code="invalid-attempt", field="attempt"
        )
    printer = LinePrinter()
    async with session.client() as client:
        if not follow:
            lines = await client.logs(run_id, attempt=attempt)
            session.print_json(lines) if session.wants_json else printer.print(lines)
            if not lines:
                session.say("no lines were logged; what handlers print is kept if they are isolated")
            return
        async for sighting in client.watch(run_id):
            _print(session, printer, [line for line in sighting.lines if attempt in (None, line.attempt)])


def _print(session: Session, printer: LinePrinter, lines: list[LogLine]) -> None:
    if not session.wants_json:
        printer.print(lines)
        return
    for line in lines:
        print(as_json(line, indent=0), flush=True)
