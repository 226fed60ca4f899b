"""Set-up builds a package that comes as source with what locks/build.txt has by hash, and with nothing else."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from include.errors import ClickmillError
from ops.bootstrap import REPOSITORY
from ops.setup.packages import BUILD_LOCK, install_packages, make_venv

PINNED_UV = re.findall(r"^uv==(\S+)", (REPOSITORY / "locks/uv.txt").read_text(), re.MULTILINE)[0]
#: A package's build backend: hands out a wheel that is there.
BACKEND = """
import pathlib, shutil

def build_wheel(folder, *_, **__):
    return pathlib.Path(shutil.copy({wheel!r}, folder)).name
"""


def wheel_of(folder: Path, name: str, version: str, module: str = "") -> Path:
    file = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        for member, text in {
            f"{name}_module.py": module,
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{about}/RECORD": "",
        }.items():
            wheel.writestr(zipfile.ZipInfo(member), text)  # of no time: the same file each time
    return file


def source_of(folder: Path, name: str, version: str) -> Path:
    file = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for member, text in {
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "pyproject.toml": '[build-system]\nrequires = ["backend"]\nbuild-backend = "backend_module"\n',
        }.items():
            info = tarfile.TarInfo(f"{name}-{version}/{member}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return file


def locked(file: Path) -> str:
    """Its line of a lock file."""
    name, version = file.name.removesuffix(".tar.gz").split("-")[:2]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


@pytest.mark.slow
def test_what_builds_a_package_is_checked_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages, elsewhere, root = (tmp_path / name for name in ("packages", "elsewhere", "tree"))
    for folder in (packages, elsewhere, root, root / "locks"):
        folder.mkdir()
    for name, value in {"UV_NO_INDEX": "1", "UV_FIND_LINKS": packages, "UV_CACHE_DIR": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    backend = BACKEND.format(wheel=str(wheel_of(elsewhere, "asource", "1.0")))
    (root / "locks/uv.txt").write_text(locked(wheel_of(packages, "uv", PINNED_UV)))
    (root / "locks/runtime.txt").write_text(locked(source_of(packages, "asource", "1.0")))
    installed = make_venv(root / ".venv").parent.parent / "lib"
    shutil.copy(REPOSITORY / ".venv" / "bin" / "uv", root / ".venv" / "bin" / "uv")

    expected = locked(wheel_of(packages, "backend", "1.0", backend))
    # As in a registry that was broken into: another file under the same name and version.
    wheel_of(packages, "backend", "1.0", backend + "# and more\n")
    for known in (expected, ""):
        (root / BUILD_LOCK).write_text(known)
        with pytest.raises(ClickmillError, match="cannot install the packages"):
            install_packages(root, ("runtime",))
        assert not list(installed.rglob("asource_module.py"))

    wheel_of(packages, "backend", "1.0", backend)
    (root / BUILD_LOCK).write_text(expected)
    assert install_packages(root, ("runtime",))
    assert list(installed.rglob("asource_module.py"))
