"""An S3 server of the tests' own: versitygw, which keeps objects as files; of several racing puts one wins."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock

from include.settings import REPOSITORY
from ops.services.health import is_answered
from tests.support.ports import claimed_port
from tests.support.waiting import wait_until

_MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_TOOLS = REPOSITORY / ".tools"


@dataclass(frozen=True)
class S3Server:
    """A running server; ``variables`` are what its clients need."""

    folder: Path
    port: int

    @property
    def variables(self) -> dict[str, str]:
        """The environment by which obstore, deltalake, Arrow and Spark find it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "clickmill",
            "AWS_SECRET_ACCESS_KEY": "a-key-of-the-tests",
        }

    def make_bucket(self, name: str) -> str:
        """An empty bucket; its address."""
        (self.folder / name).mkdir()
        return f"s3://{name}"


def versitygw() -> Path:
    """versitygw, built once for this checkout: two minutes, seconds where Go has built it before."""
    program = _TOOLS / "versitygw"
    _TOOLS.mkdir(exist_ok=True)
    with FileLock(_TOOLS / "lock"):
        if not program.exists():
            go = shutil.which("go", path=os.pathsep.join((os.environ["PATH"], "/usr/local/go/bin")))
            if go is None:
                pytest.skip("no S3 server without Go: versitygw is built from the Go module proxy (go1.24 or newer)")
            built = subprocess.run(
                [go, "install", _MODULE], env=os.environ | {"GOBIN": str(_TOOLS)}, capture_output=True, text=True
            )
            assert built.returncode == 0, built.stderr[-2000:]
    return program


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A running server, gone at the end."""
    with TemporaryDirectory(prefix="cm-s3-", ignore_cleanup_errors=True) as folder:
        server = S3Server(Path(folder), claimed_port(27070, "S3"))
        keys = {"ROOT_ACCESS_KEY": "AWS_ACCESS_KEY_ID", "ROOT_SECRET_KEY": "AWS_SECRET_ACCESS_KEY"}
        arguments = ["--quiet", "--port", f"127.0.0.1:{server.port}", "--region", "us-east-1", "posix", folder]
        process = subprocess.Popen(
            [versitygw(), *arguments],
            env=os.environ | {name: server.variables[of] for name, of in keys.items()},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_until(lambda: is_answered(server.port), "the S3 server answers", 30)
            yield server
        finally:
            process.kill()
            process.wait()
