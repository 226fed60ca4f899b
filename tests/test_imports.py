"""What the contracts on imports in pyproject.toml cannot say: no session in pure functions, and quick imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from include.settings import REPOSITORY
from ops.services.environment import find_spark_home

#: What a DAG file and a command's --help need not wait for.
SLOW = {"pyspark", "great_expectations", "pandas", "pyarrow", "numpy", "delta", "deltalake", "airflow"}


def _files(package: str) -> list[Path]:
    return sorted((REPOSITORY / package).rglob("*.py"))


def _imports(node: ast.AST, *, at_module_level: bool = False) -> Iterator[str]:
    """Dotted names imported; at module level those that importing the file imports."""
    for child in ast.iter_child_nodes(node):
        if at_module_level and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "relative imports are banned"
            yield child.module or ""
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith("import_module"):
            (name,) = child.args
            # An f-string's constant beginning names the package.
            text = name.values[0] if isinstance(name, ast.JoinedStr) else name
            yield str(text.value) if isinstance(text, ast.Constant) else ""
        yield from _imports(child, at_module_level=at_module_level)


def _packages(file: Path, *, at_module_level: bool = False) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {name.partition(".")[0] for name in _imports(tree, at_module_level=at_module_level)}


def test_pure_functions_know_no_session() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (pure,) = (contract for contract in settings["contracts"] if contract["name"].startswith("Pure functions"))
    assert pure["source_modules"]
    for module in pure["source_modules"]:
        file = REPOSITORY / f"{module.replace('.', '/')}.py"
        assert "SparkSession" not in file.read_text(encoding="utf-8"), file


def _modules_loaded_by(module: str, work: str = "") -> set[str]:
    code = f"import sys, {module}\n{work}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_plugins_that_every_task_reads_import_next_to_nothing() -> None:
    """Airflow reads the top of the plugins folder in each task; what is below is for the API server."""
    of_all = {"__future__", "airflow", "collections", "datetime", "functools", "json", "sys", "typing", "urllib"}
    # A timetable is known by the name under which DAGs import it: its file imports itself by that.
    of_one = {"hourly_partitions.py": {"importlib", "plugins", "typing_extensions"}}
    for file in (REPOSITORY / "plugins").glob("*.py"):
        assert _packages(file, at_module_level=True) <= of_all | of_one.get(file.name, set()), file
    ignored = (REPOSITORY / "plugins" / ".airflowignore").read_text(encoding="utf-8").splitlines()
    assert {f"{file.parent.name}/" for file in (REPOSITORY / "plugins").glob("*/*.py")} <= set(ignored)


def test_help_imports_nothing_slow() -> None:
    work = "for asked in ['--help'], ['backfill', '--help'], ['advise', '-h']: clickmill.app.run(asked)"
    slow = SLOW | {"pydantic", "rich", "orjson", "httpx", "supervisor"}
    assert not _modules_loaded_by("clickmill.app", work) & slow


def test_what_dags_import_is_quick() -> None:
    imported = {
        name
        for file in _files("dags")
        for name in _imports(ast.parse(file.read_text(encoding="utf-8")), at_module_level=True)
        if name.startswith(("include.", "dags.tasks."))
    }
    assert imported
    for module in imported:
        assert not _modules_loaded_by(module) & SLOW, module


def test_sparks_python_processes_import_what_is_compiled() -> None:
    """From where Spark has them import: PythonUtils.sparkPythonPath (Spark 4.2), then PYTHONPATH."""
    spark_home = find_spark_home()
    names = ("pyspark.zip", f"py4j-{version('py4j')}-src.zip")
    archives = [str(spark_home / "python" / "lib" / name) for name in names]
    program = """
import sys
import pyspark.sql.connect.streaming.worker.foreach_batch_worker
print(pyspark.__file__)
of_pyspark = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("pyspark", "py4j")]
print(len(of_pyspark), *(module.__name__ for module in of_pyspark if not module.__cached__))
"""
    environment = os.environ | {
        "SPARK_HOME": str(spark_home),
        "PYTHONPATH": os.pathsep.join([*archives, str(REPOSITORY)]),
    }
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    file, others = answer.stdout.splitlines()
    assert file == str(spark_home / "__init__.py")
    number, *not_compiled = others.split()
    assert int(number) > 50
    assert not_compiled == []
