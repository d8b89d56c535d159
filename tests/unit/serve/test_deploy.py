"""What is in `deploy/` starts the service as it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from serve_support import pair, rules, served

DEPLOY = Path(__file__).parents[3] / "deploy"


def of_systemd() -> list[str]:
    text = (DEPLOY / "coincide.service").read_text().replace("\\\n", " ")
    found = re.search(r"^ExecStart=(.*)$", text, re.M)
    assert found is not None
    return shlex.split(found[1].replace("${CREDENTIALS_DIRECTORY}", "/credentials").replace("$COINCIDE_OPTIONS", ""))


def of_docker() -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text()
    lists = dict(re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text, re.M))
    return [*json.loads(lists["ENTRYPOINT"]), *json.loads(lists["CMD"])]


@pytest.mark.parametrize("command", [of_systemd(), of_docker()], ids=["systemd", "docker"])
def test_its_command_serves(command: list[str], tmp_path: Path) -> None:
    """Only folders and the port are others here."""
    (tmp_path / "rules").mkdir()
    rules(tmp_path / "rules")
    (tmp_path / "token").write_text("hush\n")
    program, verb, *options = command
    assert (program, verb) == ("/opt/coincide/bin/coincide", "serve")
    at = options.index("--listen")
    assert options[at + 1] == "0.0.0.0:8080"
    del options[at : at + 2]
    places = {"/etc/coincide/rules": "rules", "/rules": "rules", "/credentials/token": "token"}
    here = [str(tmp_path / places[each]) if each in places else each for each in options]
    here = [str(tmp_path / "state") if each in ("/var/lib/coincide", "/state") else each for each in here]
    environment = None if "--token-file" in here else {**os.environ, "COINCIDE_TOKEN": "hush"}
    with served(*here, token="hush", environment=environment) as server:
        assert server.post(*pair(1)).status_code == 202
        assert server.until(server.made)[0]["rule"] == "pairs"
        assert httpx.post(f"{server.http.base_url}/events", json=[]).status_code == 401
        assert server.stop() == 0
    assert [*(tmp_path / "state").glob("checkpoint-?")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "coincide.service"
    unit.write_text((DEPLOY / "coincide.service").read_text().replace("/opt/coincide/bin/coincide", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=180, check=False)
    assert "coincide.service" not in done.stderr


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_nothing_is_said_of_the_dockerfile() -> None:
    done = subprocess.run(["hadolint", DEPLOY / "Dockerfile"], capture_output=True, text=True, timeout=180, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
