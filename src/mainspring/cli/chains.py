"""`mainspring chain`: which jobs follow which."""

from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_instant, safe
from mainspring.model.chain import Chain

COLUMNS = (
    Column("after", least=12),
    Column("on"),
    Column("submits", least=12),
    Column("result as"),
    Column("state"),
    Column("changed by", leave_out=1),
    Column("reason", leave_out=2),
)

Upstream = Annotated[str, Parameter(help="The job whose runs end.")]
Downstream = Annotated[str, Parameter(help="The job whose runs follow.")]
Reason = Annotated[str, Parameter(help="Why; kept in the audit.")]


@command("list")
async def list_chains(*, invocation: Invocation) -> None:
    """List chains: after runs of which job a run of which other one is submitted.

    Examples:
      mainspring chain list
      mainspring chain list -o json
    """
    async with invocation.client() as client:
        chains = await client.chains.list()
    if invocation.wants_json:
        invocation.print_json({"chains": to_builtins(chains)})
    elif chains:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in chains], invocation.room))
    else:
        invocation.print('No chains. Jobs declare them: @app.job(after="load").')


@command("pause")
async def pause(upstream: Upstream, downstream: Downstream, /, *, reason: Reason = "", invocation: Invocation) -> None:
    """Let runs of a job not follow those of another one that end from now on.

    Example:
      mainspring chain pause load report --reason "the report is being mended"
    """
    async with invocation.client() as client:
        chain = await client.chains.pause(upstream, downstream, reason=reason)
    _tell(chain, invocation)


@command("resume")
async def resume(upstream: Upstream, downstream: Downstream, /, *, reason: Reason = "", invocation: Invocation) -> None:
    """Let runs of a job follow those of another one again.

    Example:
      mainspring chain resume load report
    """
    async with invocation.client() as client:
        chain = await client.chains.resume(upstream, downstream, reason=reason)
    _tell(chain, invocation)


@command("remove")
async def remove(upstream: Upstream, downstream: Downstream, /, *, reason: Reason = "", invocation: Invocation) -> None:
    """Remove a chain that no code declares any more.

    Example:
      mainspring chain remove load report
    """
    async with invocation.client() as client:
        await client.chains.remove(upstream, downstream, reason=reason)
    if invocation.wants_json:
        invocation.print_json({"removed": True})
    else:
        invocation.print("removed; if code declares it, it comes back with the next start")


def _tell(chain: Chain, invocation: Invocation) -> None:
    if invocation.wants_json:
        invocation.print_json({"chain": to_builtins(chain)})
    else:
        state = "paused" if chain.is_paused else "submitted"
        invocation.print(f"{safe(chain.downstream)} after {safe(chain.upstream)}, on {chain.on}: {state}")


def _row(chain: Chain) -> list[Text]:
    return [
        Text(safe(chain.upstream)),
        Text(chain.on.value),
        Text(safe(chain.downstream)),
        Text(safe(chain.result or "–")),
        Text("paused", style="yellow") if chain.is_paused else Text("active"),
        Text(f"{safe(chain.changed_by)}, {as_instant(chain.changed_at)}"),
        Text(safe(chain.reason)),
    ]
