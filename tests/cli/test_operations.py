"""The files of examples/operations: the unit as systemd reads it, the compose file by the fields that Compose has."""

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from streamgauge.cli.catalogue import COMMANDS

FOLDER = Path(__file__).parents[2] / "examples" / "operations"
ENDS_S = 5
"""How long a server may take to end: what stops it waits longer."""

RESTARTS = ("no", "always", "on-failure", "unless-stopped")
HEALTHY = {"test": list, "interval": str}
SERVICE = {
    "image": str,
    "command": str,
    "network_mode": str,
    "restart": str,
    "volumes": list,
    "depends_on": list,
    "stop_grace_period": str,
    "healthcheck": dict,
}
"""The fields of the Compose specification (https://github.com/compose-spec/compose-spec) that the file uses."""


def unit() -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(FOLDER / "streamgauge.service")
    return parser


@pytest.mark.server
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_has_nothing_to_say_of_the_unit(tmp_path):
    service = unit()["Service"]
    program = service["ExecStart"].split()[0]
    copy = tmp_path / "streamgauge.service"
    text = (FOLDER / copy.name).read_text().replace(program, sys.executable)
    copy.write_text(text.replace(service["WorkingDirectory"], str(tmp_path)))
    assert verified(copy) == ""
    copy.write_text(copy.read_text().replace("WatchdogSec", "WatchdogSecs"))
    assert "Unknown key 'WatchdogSecs'" in verified(copy)


def verified(file: Path) -> str:
    """The sentences of systemd on a unit."""
    words = ["systemd-analyze", "verify", "--man=no", str(file)]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def test_the_unit_starts_a_command_and_waits_for_its_end():
    service = unit()["Service"]
    program, group, _ = service["ExecStart"].split()
    assert Path(program).name == "streamgauge"
    assert group in COMMANDS
    assert int(service["TimeoutStopSec"]) > ENDS_S
    assert service["SuccessExitStatus"] == "143"


def test_the_services_are_those_of_a_compose_file():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert list(compose) == ["services"]
    for service in compose["services"].values():
        assert {name: type(value) for name, value in service.items()}.items() <= SERVICE.items()
        assert service["restart"] in RESTARTS
        assert set(service.get("depends_on", ())) <= set(compose["services"])
        assert {name: type(value) for name, value in service.get("healthcheck", {}).items()}.items() <= HEALTHY.items()
    own = compose["services"]["streamgauge"]
    assert own["command"].split()[0] in COMMANDS
    assert int(re.fullmatch(r"(\d+)s", own["stop_grace_period"])[1]) > ENDS_S
    assert own["healthcheck"]["test"][0] == "CMD"
