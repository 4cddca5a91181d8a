"""`mainspring tenant`: whose jobs and runs there are, and how large a share of the workers each tenant has."""

from typing import Annotated

from cyclopts import Parameter
from msgspec import to_builtins
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_instant, safe
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.model.tenant import TenantStatus

COLUMNS = (
    Column("tenant", least=12),
    Column("weight", is_number=True),
    Column("in line", is_number=True),
    Column("at workers", is_number=True),
    Column("changed", leave_out=1),
    Column("changed by", leave_out=2),
    Column("reason", leave_out=3),
)

Name = Annotated[str, Parameter(help="The tenant's name.")]
Reason = Annotated[str, Parameter(help="Why; kept in the audit.")]


@command("list")
async def list_tenants(*, invocation: Invocation) -> None:
    """List tenants.

    While tenants have runs in line, workers take as many of each as their
    weights say.

    Examples:
      mainspring tenant list
      mainspring tenant list -o json
    """
    async with invocation.client(tenant=DEFAULT_TENANT_NAME) as client:
        tenants = await client.tenants.list()
    if invocation.wants_json:
        invocation.print_json({"tenants": to_builtins(tenants)})
    else:
        invocation.print_lines(fitted(COLUMNS, [_row(each) for each in tenants], invocation.room))


@command("show")
async def show(tenant: Name, /, *, invocation: Invocation) -> None:
    """Show a tenant.

    Example:
      mainspring tenant show acme
    """
    async with invocation.client(tenant=DEFAULT_TENANT_NAME) as client:
        found = await client.tenants.find(tenant)
    _tell(found, invocation)


@command("create")
async def create(
    tenant: Name,
    /,
    *,
    weight: Annotated[int, Parameter(help="Its share of the workers, against the others.")] = 1,
    reason: Reason = "",
    invocation: Invocation,
) -> None:
    """Make a tenant, with jobs, runs, schedules and limits of its own.

    Programs act for it with Mainspring(tenant="acme") or job.options(tenant="acme"),
    commands with --tenant acme. All workers serve it.

    Examples:
      mainspring tenant create acme
      mainspring tenant create acme --weight 3 --reason "a large customer"
      mainspring run list --tenant acme
    """
    async with invocation.client(tenant=DEFAULT_TENANT_NAME) as client:
        made = await client.tenants.create(tenant, weight=weight, reason=reason)
    _tell(made, invocation)


@command("set")
async def set_weight(
    tenant: Name,
    /,
    *,
    weight: Annotated[int, Parameter(help="Its share of the workers, against the others.")],
    reason: Reason = "",
    invocation: Invocation,
) -> None:
    """Give a tenant another share of the workers, within a second.

    Example:
      mainspring tenant set acme --weight 5 --reason "the migration is behind"
    """
    async with invocation.client(tenant=DEFAULT_TENANT_NAME) as client:
        changed = await client.tenants.set_weight(tenant, weight, reason=reason)
    _tell(changed, invocation)


def _tell(tenant: TenantStatus, invocation: Invocation) -> None:
    if invocation.wants_json:
        invocation.print_json({"tenant": to_builtins(tenant)})
    else:
        invocation.print_lines(fitted(COLUMNS, [_row(tenant)], invocation.room))


def _row(tenant: TenantStatus) -> list[Text]:
    return [
        Text(safe(tenant.name)),
        Text(f"{tenant.weight:,}"),
        Text(f"{tenant.depth:,}"),
        Text(f"{tenant.holding:,}"),
        Text(as_instant(tenant.changed_at)),
        Text(safe(tenant.changed_by)),
        Text(safe(tenant.reason)),
    ]
