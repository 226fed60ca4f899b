"""The containers of a compose file for real: by Docker, or by podman on a machine without Docker.

Where images cannot be pulled, others stand in for them under their names (tests/containers/stand_ins): a base made by
debootstrap that knows this machine's mirrors, the same programs from Debian, and an S3 server built from source.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from include.errors import ClickmillError
from include.settings import REPOSITORY
from ops.compose_env import complete
from ops.setup.jars import BROKER_JARS_LOCK, JAR_FOLDERS
from tests.support.ports import claimed_port
from tests.support.s3_server import versitygw
from tests.support.waiting import wait_until

STAND_INS = Path(__file__).parent.parent / "containers" / "stand_ins"
PREPARE = "prepare"
PROFILES = ("kafka", "receiver")
#: What it needs. By depends_on podman 4 starts nothing that depends on what depends on something else.
_BEFORE = ("postgres", "redis", "s3")
_PORTS = {
    "CLICKMILL_AIRFLOW_PORT": 28080, "CLICKMILL_SPARK_UI_PORT": 24040, "CLICKMILL_SPARK_PORT": 25002,
    "CLICKMILL_SPARK_HISTORY_PORT": 28180, "CLICKMILL_S3_PORT": 27170,
}  # fmt: skip
_IMAGE = "localhost/clickmill-test"
#: What the compose files read, and compose prefers the shell's.
_READ_BY_COMPOSE = ("CLICKMILL_", "AWS_", "AIRFLOW_", "OTEL_")
#: podman on a machine without systemd; few open files: with many, Python's subprocess closes them all, one by one.
_PODMAN = """
[containers]
default_ulimits = ["nofile=4096:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True)
class Project:
    """A compose project of the tests' own, of one of the two files."""

    file: Path
    engine: str
    compose: Sequence[str]
    project: str
    environment: Mapping[str, str]
    settings: Path

    @cached_property
    def values(self) -> dict[str, str]:
        """What .env says: passwords, keys and ports."""
        return dict(line.split("=", 1) for line in self.settings.read_text().splitlines())

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of compose."""
        command = [
            *self.compose,
            "-f",
            self.file,
            "--project-name",
            self.project,
            "--env-file",
            self.settings,
            *arguments,
        ]
        return _run(command, self.environment, check)

    def inside(self, service: str, *command: str) -> str:
        """What a command prints that runs in the service's container."""
        return _run([self.engine, "exec", self.container(service), *command], self.environment).stdout

    def containers(self, service: str) -> list[str]:
        """The service's containers, by name."""
        listed = _run([self.engine, "ps", "--all", "--format", "{{.Names}}"], self.environment).stdout.split()
        return sorted(name for name in listed if re.fullmatch(rf"{self.project}[-_]{service}[-_]\d+", name))

    def container(self, service: str) -> str:
        """The first of them."""
        return self.containers(service)[0]

    def services(self) -> list[str]:
        """Those that have containers, but for the step that has ended."""
        listed = self.run("config", "--services").stdout.split()
        return [name for name in listed if name != PREPARE and self.containers(name)]

    def unwell(self) -> list[str]:
        """The containers whose health check fails, or that do not run."""
        return [name for service in self.services() for name in self.containers(service) if not self._is_well(name)]

    def _is_well(self, container: str) -> bool:
        if self.engine == "podman":
            # Without systemd nothing else has the check run.
            command = ["podman", "healthcheck", "run", container]
            return _run(command, self.environment, check=False).returncode == 0
        command = [self.engine, "inspect", "--format", "{{.State.Health.Status}}", container]
        return _run(command, self.environment, check=False).stdout.strip() == "healthy"

    def kill(self, container: str) -> None:
        """End its first process from outside, as a crash would; the engine starts it again."""
        command = [self.engine, "inspect", "--format", "{{.State.Pid}}", container]
        os.kill(int(_run(command, self.environment).stdout), signal.SIGKILL)

    def started(self, container: str) -> str:
        """When it was started last."""
        return _run([self.engine, "inspect", "--format", "{{.State.StartedAt}}", container], self.environment).stdout

    def up(self, *services: str, profile: str = "") -> None:
        """Start these services, or all but those of profiles; the images are there."""
        of_profile = ("--profile", profile) if profile else ()
        if self.engine != "podman":
            self.run(*of_profile, "up", "--detach", *services)
            return
        start = (*of_profile, "up", "--detach", "--no-build", "--no-deps")
        if not services and PREPARE in self.run("config", "--services").stdout.split():
            self.run(*start, *_BEFORE, PREPARE)
            if _run(["podman", "wait", self.container(PREPARE)], self.environment).stdout.strip() != "0":
                raise ClickmillError(self.logs(PREPARE))
        self.run(*start, *services)

    def wait_until_well(self, seconds: float = 600) -> None:
        """Wait until all health checks pass; else show what each service printed."""
        try:
            wait_until(lambda: not self.unwell(), "all containers are well", seconds)
        except AssertionError:
            for service in self.services():
                print(f"--- {service}\n{self.logs(service)}")
            raise

    def logs(self, service: str) -> str:
        """The end of what a service has printed."""
        return "\n".join(
            result.stdout[-3000:] + result.stderr[-3000:]
            for name in self.containers(service)
            for result in [_run([self.engine, "logs", "--tail", "40", name], self.environment, check=False)]
        )


def _run(
    command: Sequence[str | Path], environment: Mapping[str, str], check: bool = True, folder: Path = REPOSITORY
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=dict(environment), capture_output=True, text=True
    )
    if check and done.returncode != 0:
        raise ClickmillError(f"{' '.join(map(str, command))}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


@contextmanager
def project(file: str, **settings: str) -> Iterator[Project]:
    """The containers of docker-compose.yml or of the small file, well; gone at the end, but for the images.

    Args:
        file: its path in the repository.
        settings: for .env, beside ports of this project's own.
    """
    with TemporaryDirectory(prefix="cm-compose-") as folder:
        # Not what a developer has set.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_READ_BY_COMPOSE)}
        stack = _project(REPOSITORY / file, Path(folder), settings, kept)
        try:
            stack.up()
            stack.wait_until_well()
            yield stack
        finally:
            stack.run(*(word for name in PROFILES for word in ("--profile", name)), "down", "--volumes", check=False)


def refusal() -> str:
    """Why this machine runs no containers, whatever is in them; nothing where it does.

    A program without libraries, with the network, the limit and the port that the compose files ask for.
    """
    with TemporaryDirectory(prefix="cm-compose-") as folder:
        environment, root, network = dict(os.environ), Path(folder, "root"), f"cmtest{os.getpid()}"
        if _has_docker(environment):
            return ""
        _use_podman(Path(folder), environment)
        root.mkdir()
        program = shutil.copy(shutil.which("catatonit") or "catatonit", root)
        port = f"127.0.0.1:{claimed_port(28080, 'a container')}:80"
        asked = ("--network", network, "--publish", port, "--memory", "64m", "--read-only", "--cap-drop", "ALL")
        try:
            _run(["podman", "network", "create", network], environment)
            _run(["podman", "run", "--rm", *asked, "--rootfs", root, f"/{Path(program).name}", "-V"], environment)
        except ClickmillError as error:
            return str(error)
        finally:
            _run(["podman", "network", "rm", "--force", network], environment, check=False)
    return ""


def _has_docker(environment: Mapping[str, str]) -> bool:
    return bool(shutil.which("docker")) and _run(["docker", "info"], environment, check=False).returncode == 0


def _use_podman(folder: Path, environment: dict[str, str]) -> None:
    if not shutil.which("podman"):
        raise ClickmillError("no Docker and no podman: install one of them (.ci/run does), then run it again")
    (folder / "containers.conf").write_text(_PODMAN)
    environment["CONTAINERS_CONF"] = str(folder / "containers.conf")


def _project(file: Path, folder: Path, settings: Mapping[str, str], environment: dict[str, str]) -> Project:
    env = folder / "env"
    ports = {name: str(claimed_port(usual, name)) for name, usual in _PORTS.items()}
    values = ports | {"CLICKMILL_IMAGE": _IMAGE, "CLICKMILL_UID": "1000", **settings}
    env.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    complete(env)
    name = f"cmtest{os.getpid()}"
    if _has_docker(environment):
        stack = Project(file, "docker", ("docker", "compose"), name, environment, env)
        stack.run("build")
        return stack
    _use_podman(folder, environment)
    base = "docker.io/library/debian:bookworm-slim"
    if _run(["podman", "pull", "-q", base], environment, check=False).returncode != 0:
        base = _make_base(folder, environment)
        _make_stand_ins(folder, base, environment)
    _build(REPOSITORY, f"{_IMAGE}:local", base, environment, "--file", "deploy/Dockerfile")
    return Project(file, "podman", (sys.executable, "-m", "podman_compose"), name, environment, env)


def _build(folder: Path, name: str, base: str, environment: Mapping[str, str], *more: str) -> None:
    few_files = ("--ulimit", "nofile=1024:1024")
    command = ["podman", "build", "-q", "--isolation", "chroot", *few_files, "--build-arg", f"BASE_IMAGE={base}"]
    _run([*command, "--tag", name, *more, "."], environment, folder=folder)


def _make_base(folder: Path, environment: Mapping[str, str]) -> str:
    """Debian 12 with this machine's apt sources, certificates and pip settings; its name."""
    name = "localhost/clickmill-test-base:bookworm"
    if _run(["podman", "image", "exists", name], environment, check=False).returncode == 0:
        return name
    root = folder / "root"
    _run(["debootstrap", "--variant=minbase", "bookworm", root], environment)
    for where in ("etc/apt/sources.list.d/debian.sources", "etc/apt/sources.list", "etc/pip.conf"):
        (root / where).unlink(missing_ok=True)
        if Path("/", where).exists():
            shutil.copy(Path("/", where), root / where)
    for file in Path("/etc/apt/apt.conf.d").glob("99*"):
        shutil.copy(file, root / "etc/apt/apt.conf.d")
    known = Path("/etc/ssl/certs/ca-certificates.crt").read_text()
    (root / "usr/local/share/ca-certificates").mkdir(parents=True, exist_ok=True)
    for number, certificate in enumerate(
        re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", known, re.S)
    ):
        (root / f"usr/local/share/ca-certificates/machine-{number}.crt").write_text(certificate + "\n")
    archive = folder / "root.tar"
    _run(["tar", "-C", root, "-cf", archive, "."], environment)
    _run(["podman", "import", "-q", archive, name], environment)
    archive.unlink()
    return name


def _make_stand_ins(folder: Path, base: str, environment: Mapping[str, str]) -> None:
    """An image of Debian's for each that docker-compose.yml names, under its name."""
    context = folder / "stand-ins"
    shutil.copytree(STAND_INS, context)
    shutil.copy(versitygw(), context / "versitygw")
    shutil.copytree(REPOSITORY / JAR_FOLDERS[BROKER_JARS_LOCK], context / "broker")
    files = ("docker-compose.yml", "deploy/docker-compose.small.yml")
    text = "".join((REPOSITORY / file).read_text() for file in files)
    for name in sorted(set(re.findall(r"^    image: (docker\.io/\S+)$", text, re.MULTILINE))):
        stage = name.rpartition("/")[2].partition(":")[0]
        _build(context, name, base, environment, "--target", stage)


def executors(team: Project) -> list[dict[str, object]]:
    """The executors that Spark's driver has, as its UI says; the driver itself is left out."""
    script = "import urllib.request as u; print(u.urlopen('http://localhost:4040/api/v1/applications').read().decode())"
    (application, *_) = json.loads(team.inside("spark-connect", "python", "-c", script))
    path = f"applications/{application['id']}/executors"
    told = json.loads(team.inside("spark-connect", "python", "-c", script.replace("applications", path)))
    return [executor for executor in told if executor["id"] != "driver"]


#: What the check of a machine that runs no containers exits with; any other error is one.
REFUSED = 3

if __name__ == "__main__":
    reason = refusal()
    print(reason)
    sys.exit(REFUSED if reason else 0)
