"""`mainspring tenant …` and `--tenant`, as programs and people meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_cli import mainspring

if TYPE_CHECKING:
    from mainspring import Mainspring


@pytest.fixture
async def shop(app: Mainspring, url: str) -> tuple[str, str]:
    @app.job
    async def send(order: int) -> None: ...

    await app.tenants.create("acme", weight=3, reason="large")
    await send.options(tenant="acme").submit(order=1)
    return "--database-url", url


async def test_tenants_are_listed_for_people_and_for_programs(shop: tuple[str, str]) -> None:
    listed = mainspring("tenant", "list", *shop)
    document = mainspring("tenant", "list", *shop, "-o", "json").document

    assert [line.split()[:4] for line in listed.out.splitlines()] == [
        ["tenant", "weight", "in", "line"],
        ["acme", "3", "1", "0"],
        ["default", "1", "0", "0"],
    ]
    assert [(each["name"], each["weight"], each["depth"]) for each in document["tenants"]] == [
        ("acme", 3, 1),
        ("default", 1, 0),
    ]


async def test_a_tenant_is_made_weighed_and_acted_for(shop: tuple[str, str]) -> None:
    made = mainspring("tenant", "create", "beta", "--reason", "new", *shop, "-o", "json").document
    assert (made["tenant"]["name"], made["tenant"]["weight"], made["tenant"]["reason"]) == ("beta", 1, "new")
    assert "5" in mainspring("tenant", "set", "beta", "--weight", "5", *shop).out
    assert mainspring("tenant", "show", "beta", *shop, "-o", "json").document["tenant"]["weight"] == 5

    run = mainspring("run", "submit", "send", "--arg", "order=2", "--tenant", "acme", *shop).out.strip()
    assert run in mainspring("run", "list", "--tenant", "acme", *shop).out
    assert run not in mainspring("run", "list", *shop).out
    refused = mainspring("run", "show", run, *shop)
    assert (refused.code, "run-not-found" in refused.err) == (1, True)


async def test_bad_tenants_are_refused_in_words(shop: tuple[str, str]) -> None:
    nobody = mainspring("run", "list", "--tenant", "nobody", *shop)
    assert nobody.code == 1
    assert "There is no tenant named 'nobody'" in nobody.err
    assert "tenant-not-found" in nobody.err
    weightless = mainspring("tenant", "create", "beta", "--weight", "0", *shop)
    assert (weightless.code, "invalid-weight" in weightless.err) == (1, True)
    misnamed = mainspring("tenant", "create", "a b", *shop)
    assert (misnamed.code, "invalid-tenant" in misnamed.err) == (1, True)
    taken = mainspring("tenant", "create", "acme", *shop)
    assert (taken.code, "tenant-exists" in taken.err) == (1, True)


async def test_a_tenant_is_made_by_whoever_acts_for_it(shop: tuple[str, str]) -> None:
    made = mainspring("tenant", "create", "gamma", "--tenant", "gamma", *shop)

    assert made.code == 0
    assert "gamma" in made.out


async def test_an_application_for_another_tenant_is_refused(shop: tuple[str, str]) -> None:
    refused = mainspring(
        "run", "submit", "load", "--app", "tests.system.tenant_app:app", "--tenant", "beta", "--wait", *shop
    )

    assert refused.code == 1
    assert "tenant-of-application" in refused.err
