"""The compose files, the Dockerfile and .dockerignore, read as text: that they work is seen in tests/containers."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import yaml
from cryptography.fernet import Fernet

from ops.bootstrap import REPOSITORY
from ops.compose_env import MADE, complete
from ops.setup.jars import BROKER_JARS_LOCK, JARS_LOCK, S3_JARS_LOCK
from ops.setup.packages import BUILD_LOCK, LOCKS, UV_LOCK
from ops.setup.prerequisites import JAVA_VERSIONS

SMALL = "deploy/docker-compose.small.yml"
TEAM = "docker-compose.yml"
FILES: dict[str, dict[str, Any]] = {name: yaml.safe_load((REPOSITORY / name).read_text()) for name in (SMALL, TEAM)}
SERVICES: dict[str, dict[str, Any]] = FILES[SMALL]["services"]
TEAM_SERVICES: dict[str, dict[str, Any]] = FILES[TEAM]["services"]
#: Of the team's file, those that are not another file's: their image is ours, or said here.
ITS_OWN = {name: service for name, service in TEAM_SERVICES.items() if "extends" not in service}
OURS = {name: service for name, service in ITS_OWN.items() if service["image"].startswith("${CLICKMILL_IMAGE")}
GUIDES = {SMALL: "docker.md", TEAM: "team.md"}
DOCKERFILE = (REPOSITORY / "deploy/Dockerfile").read_text()
BROKER_JARS = (REPOSITORY / BROKER_JARS_LOCK).read_text()
REQUIREMENTS = (REPOSITORY / LOCKS["runtime"]).read_text()


LOCKS_OF_THE_IMAGE = (LOCKS["runtime"], LOCKS["team"], BUILD_LOCK, UV_LOCK, JARS_LOCK, S3_JARS_LOCK)


def instructions(name: str) -> list[str]:
    """The Dockerfile's instructions of one kind, without comments, each on one line."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [line.removeprefix(f"{name} ").strip() for line in joined if line.startswith(f"{name} ")]


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in instructions("ENV") for pair in line.split())


def mounts(service: str) -> dict[str, str]:
    """What is mounted where, of a service: path in the container -> name or folder; the mode is left out."""
    sources = {}
    for volume in SERVICES[service]["volumes"]:
        source, target = re.fullmatch(r"(\$\{.*?\}|[^:]*):([^:]*)(?::ro)?", volume).groups()  # type: ignore[union-attr]
        sources[target] = source
    return sources


def test_a_teams_ports_are_published_on_loopback_only() -> None:
    for name, service in ITS_OWN.items():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name} publishes {port}"


def test_a_teams_containers_are_closed_watched_and_limited() -> None:
    assert len(OURS) > 10
    for name, service in ITS_OWN.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        if name == "prepare":
            assert service["restart"] == "no"
        else:
            assert service["restart"] == "unless-stopped", name
            assert service["healthcheck"]["test"][0] == "CMD", name
    assert not any("user" in service for service in OURS.values())


def test_sparks_java_may_load_what_it_unpacks() -> None:
    programs = [service for name, service in OURS.items() if name.startswith("spark-")]

    assert len(programs) == 4
    for service in programs:
        # Docker mounts it noexec otherwise, podman 4 does not.
        assert service["tmpfs"] == ["/tmp:exec"]


def test_airflow_reads_no_settings_where_sparks_containers_write() -> None:
    of_airflow = TEAM_SERVICES["airflow-api-server"]["environment"]

    for variable in ("AIRFLOW_CONFIG", "AIRFLOW__FAB__CONFIG_FILE"):
        assert of_airflow[variable].startswith("/tmp/"), variable


def test_a_team_has_no_secret_with_a_default() -> None:
    secret = re.compile("PASSWORD|SECRET|TOKEN|KEY|ADMIN")
    text = (REPOSITORY / TEAM).read_text()
    for variable, default in re.findall(r"\$\{(\w+)(:?-[^}]*)?", text):
        assert not (secret.search(variable) and default), f"{variable}{default}"
    assert set(MADE) == {name for name in re.findall(r"\$\{(\w+):\?run make compose-env\}", text)}
    for name, service in TEAM_SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if secret.search(variable):
                assert "${CLICKMILL_" in value or value == "", f"{name}: {variable}={value}"


def test_containers_that_are_not_airflows_have_none_of_its_secrets() -> None:
    for name, service in OURS.items():
        if name.startswith(("spark", "stream", "receiver")):
            environment = yaml.safe_dump(service["environment"])
            assert not re.search("CLICKMILL_(AIRFLOW|ADMIN|POSTGRES|REDIS)", environment), name


def test_missing_secrets_are_made_and_what_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# ours\nCLICKMILL_REDIS_PASSWORD=chosen\nCLICKMILL_S3_SECRET_KEY=\nCLICKMILL_UID=1001\n")

    made = complete(file)
    values = dict(line.split("=", 1) for line in file.read_text().splitlines()[1:])

    assert set(made) == set(MADE) - {"CLICKMILL_REDIS_PASSWORD"}
    assert (values["CLICKMILL_REDIS_PASSWORD"], values["CLICKMILL_UID"]) == ("chosen", "1001")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len({values[name] for name in MADE}) == len(MADE)
    # Of what stands in an address, nothing ends it or has to be written otherwise.
    assert all(quote(values[name], safe="") == values[name] for name in MADE if name.endswith(("PASSWORD", "TOKEN")))
    before = file.read_text()
    assert complete(file) == []
    assert file.read_text() == before


def test_airflow_takes_the_keys_that_are_made() -> None:
    Fernet(MADE["CLICKMILL_AIRFLOW_FERNET_KEY"]().encode())
    assert len(MADE["CLICKMILL_AIRFLOW_JWT_SECRET"]().encode()) >= 64


def test_ports_are_published_on_loopback_only_and_are_the_same_inside_and_outside() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published
    for name, ports in published.items():
        for port in ports:
            match = re.fullmatch(r"127\.0\.0\.1:(\$\{(\w+):-\d+\}):(\$\{\w+:-\d+\})", port)
            assert match, f"{name} publishes {port}: expected 127.0.0.1:${{VARIABLE:-port}}:${{VARIABLE:-port}}"
            assert match[1] == match[3] == SERVICES[name]["environment"][match[2]]
    assert not any("network_mode" in service for name, service in SERVICES.items() if name != "postgres")


def test_database_has_no_network() -> None:
    assert SERVICES["postgres"]["network_mode"] == "none"
    assert "ports" not in SERVICES["postgres"]


def test_database_is_reached_through_the_shared_socket_by_drivers_that_are_locked() -> None:
    address = SERVICES["clickmill"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    folder = parse_qs(urlsplit(address).query)["host"][0]

    assert urlsplit(address).password is None
    assert urlsplit(address).username == SERVICES["postgres"]["environment"]["POSTGRES_USER"]
    assert mounts("clickmill")[folder] == mounts("postgres")["/var/run/postgresql"]
    # Airflow puts asyncpg in the place of the driver that the address names, for its other engine.
    assert urlsplit(address).scheme == "postgresql+psycopg2"
    for package in ("psycopg2-binary", "asyncpg"):
        assert re.search(rf"^{package}==\d", REQUIREMENTS, re.MULTILINE), f"{package} is not in {LOCKS['runtime']}"


def test_broker_is_there_when_it_is_asked_for_and_for_the_project_only() -> None:
    broker = SERVICES["kafka"]
    environment = broker["environment"]
    advertised = environment["KAFKA_ADVERTISED_LISTENERS"].removeprefix("PLAINTEXT://")

    assert broker["profiles"] == ["kafka"]
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["kafka"]
    assert not any("kafka" in service.get("depends_on", {}) for service in SERVICES.values())
    assert "ports" not in broker
    assert advertised.startswith("kafka:")
    assert advertised in broker["healthcheck"]["test"]
    assert SERVICES["clickmill"]["environment"]["CLICKMILL_KAFKA"] == f"${{CLICKMILL_KAFKA:-{advertised}}}"
    assert mounts("kafka") == {environment["KAFKA_LOG_DIRS"]: "kafka"}
    embedded = re.search(r"^org\.apache\.kafka:kafka_[\d.]+:([\d.]+) ", BROKER_JARS, re.MULTILINE)
    assert embedded
    assert broker["image"] == f"docker.io/apache/kafka:{embedded[1]}"


def test_images_of_others_are_pinned_and_our_own_is_built_here() -> None:
    for name, service in (SERVICES | ITS_OWN).items():
        if not service["image"].startswith("${CLICKMILL_IMAGE"):
            assert re.search(r":v?\d+\.\d+[\w.-]*$", service["image"]), (
                f"{name}: {service['image']} has no full version"
            )
    assert [name for name, service in SERVICES.items() if "build" in service] == ["clickmill"]
    assert [name for name, service in TEAM_SERVICES.items() if "build" in service] == ["prepare"]


def test_no_secret_is_in_the_files() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|KEY", variable):
                assert variable.endswith("_FILE"), f"{name}: {variable}={value}"
    assert not re.search(r"(?i)(password|secret|token|fernet)\w*=", DOCKERFILE)


def test_every_service_comes_back_is_watched_and_has_time_to_end() -> None:
    for service in SERVICES.values():
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["stop_grace_period"] == "1m"


def test_clickmill_runs_without_root_and_without_privileges() -> None:
    service = SERVICES["clickmill"]

    assert instructions("USER") == ["clickmill"]
    assert DOCKERFILE.index("\nUSER ") > DOCKERFILE.rindex("\nRUN ")
    assert "user" not in service
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True


def test_state_and_configuration_are_mounted_where_the_image_looks_for_them() -> None:
    code = instructions("WORKDIR")[0]
    state = image_environment()["CLICKMILL_HOME"]

    assert mounts("clickmill")[state] == "${CLICKMILL_STATE:-state}"
    assert image_environment()["AIRFLOW_HOME"] == f"{state}/airflow"
    assert mounts("clickmill")[f"{code}/config"] == "../config"
    assert f"--home-dir {state} " in DOCKERFILE
    named = {source for name in SERVICES for source in mounts(name).values() if not source.startswith((".", "/", "$"))}
    assert named | {"state"} == set(FILES[SMALL]["volumes"])


@pytest.mark.parametrize("file", FILES)
def test_what_a_file_names_is_there_from_where_it_stands(file: str) -> None:
    services, folder = FILES[file]["services"].values(), (REPOSITORY / file).parent
    builds = [service["build"] for service in services if "build" in service]
    volumes = [volume for service in services for volume in service.get("volumes", ())]
    mounted = {path for volume in volumes for path in re.findall(r"(?:^|:-)(\.[^:}]*)", volume)}

    assert [(folder / build["context"]).resolve() for build in builds] == [REPOSITORY]
    assert [(folder / build["context"] / build["dockerfile"]).is_file() for build in builds] == [True]
    assert [(folder / path).exists() for path in mounted] == [True] * (2 if file == TEAM else 1)
    assert all((folder / service["extends"]["file"]).is_file() for service in services if "extends" in service)
    settings = [path["path"] for service in services for path in service.get("env_file", ())]
    assert {(folder / path).resolve() for path in settings} <= {REPOSITORY / ".env"}


def test_versions_are_said_in_the_lock_files_only() -> None:
    installed = [line for line in instructions("RUN") if re.search(r"\b(pip|uv|curl|wget|mvn)\b", line)]

    assert [line for line in instructions("RUN") if "python3 -m ops.bootstrap" in line]
    assert not installed, f"{installed}: ops.bootstrap installs what the lock files name"
    assert "==" not in DOCKERFILE
    for file in ("deploy/Dockerfile", SMALL, ".dockerignore"):
        text = re.sub(r"\b(postgresql\+psycopg2|PLAINTEXT|CONTROLLER)://", "", (REPOSITORY / file).read_text())
        assert "://" not in text
    assert "locks locks" in instructions("COPY")
    assert {Path(lock).parent.name for lock in LOCKS_OF_THE_IMAGE} == {"locks"}


def test_image_copies_what_its_set_up_imports_before_it_runs(tmp_path: Path) -> None:
    before = DOCKERFILE[: DOCKERFILE.index("python3 -m ops.bootstrap")]
    for line in re.findall(r"^COPY (?!--)(.*)$", before, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            place = tmp_path / target
            if (REPOSITORY / source).is_dir():
                shutil.copytree(REPOSITORY / source, place)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / source, place)

    # -S: nothing is installed there.
    run = subprocess.run(
        [sys.executable, "-S", "-m", "ops.bootstrap", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_image_has_a_java_that_spark_takes_and_debian_has() -> None:
    java = re.search(r"openjdk-(\d+)-jre-headless", DOCKERFILE)

    assert java
    assert int(java[1]) in JAVA_VERSIONS
    assert instructions("FROM") == ["${BASE_IMAGE} AS base", "base AS installed", "base"]
    assert "BASE_IMAGE=docker.io/library/debian:bookworm-slim" in instructions("ARG")
    assert SERVICES["clickmill"]["build"]["args"]["BASE_IMAGE"].endswith(":-docker.io/library/debian:bookworm-slim}")


def test_image_gets_the_code_that_runs_and_nothing_else() -> None:
    lines = [
        line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    folders = {file.parent.name for file in REPOSITORY.glob("[a-z]*/*.py")} - {"benchmarks", "tests"}
    runs = folders | {"config"}

    assert lines[0] == "*"
    assert {"dags", "ops"} <= folders
    assert runs <= let_in
    assert let_in - runs <= {"plugins", "locks"}


def test_settings_file_of_the_user_is_not_for_git() -> None:
    assert "/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("file", FILES)
def test_every_variable_is_explained_in_the_guide(file: str) -> None:
    guide = (REPOSITORY / "docs" / "guides" / GUIDES[file]).read_text()
    explained = {
        name for row in re.findall(r"^\| (`[A-Z][^|]*) \| ", guide, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    assert set(re.findall(r"\$\{(\w+)", (REPOSITORY / file).read_text())) <= explained
