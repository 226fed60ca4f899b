"""Imports run one way: dags → include ← spark_jobs → expectations → include; what must be quick stays so."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from include.settings import REPOSITORY
from ops.services.environment import find_spark_home

OWN = {"dags", "expectations", "include", "ops", "plugins", "samples", "spark_jobs", "tests"}
#: Which of the own packages each may import, itself included.
MAY_IMPORT = {
    "include": {"include"},
    "dags": {"dags", "include"},
    "expectations": {"expectations", "include"},
    "spark_jobs": {"spark_jobs", "expectations", "include"},
    "samples": {"samples", "include"},
    "plugins": {"plugins", "include"},
}
#: Packages that these may not import at all, wherever in the file.
NEVER = {
    "include": {"pyspark", "delta", "great_expectations"},
    "dags": {"pyspark", "delta", "great_expectations", "pandas"},
    "expectations": {"pyspark", "delta", "airflow"},
    "samples": {"pyspark", "delta", "airflow", "great_expectations", "pandas"},
    "ops": {"pyspark", "delta", "great_expectations"},
    "spark_jobs": {"airflow"},
    "plugins": {"pyspark", "delta", "great_expectations", "pandas"},
}
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


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package: str) -> None:
    files = _files(package)
    assert files
    for file in files:
        # It runs a job by its name inside a task: the one place where the arrow turns, at call time.
        is_launcher = file == REPOSITORY / "dags" / "tasks" / "launch.py"
        wrong = _packages(file, at_module_level=is_launcher) & OWN - MAY_IMPORT[package]
        assert not wrong, f"{file.relative_to(REPOSITORY)} imports {sorted(wrong)}; see design.md, Layout"


@pytest.mark.parametrize("package", NEVER)
def test_packages_stay_free_of_others(package: str) -> None:
    for file in _files(package):
        # Run by spark-submit, imported by nobody.
        if file == REPOSITORY / "ops" / "connect_server.py":
            continue
        wrong = _packages(file) & NEVER[package]
        assert not wrong, f"{file.relative_to(REPOSITORY)} imports {sorted(wrong)}"


def test_transforms_read_no_environment_clock_or_files() -> None:
    pure = (
        *("ingest/clicks", "ingest/outcomes", "ingest/sampled_lines", "ingest/out_of_order", "aggregate/count"),
        *("aggregate/groupings", "aggregate/movers", "quality/measures", "quality/row_rules", "quality/broken_rows"),
        *("grouping/dealing", "stream/lines", "stream/batch_counts", "stream/live_counts", "engine/column_functions"),
    )
    for file in (REPOSITORY / "spark_jobs" / f"{name}.py" for name in pure):
        wrong = _packages(file) & {"os", "pathlib", "time", "datetime", "random", "io", "tempfile"}
        assert not wrong, f"{file.relative_to(REPOSITORY)} imports {sorted(wrong)}; transforms are pure"
        assert "SparkSession" not in file.read_text(encoding="utf-8"), file


def test_include_imports_airflow_only_when_called() -> None:
    for file in _files("include"):
        assert not _packages(file, at_module_level=True) & {"airflow", "spark_jobs", "expectations"}, file


def _modules_loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_plugin_that_every_task_reads_imports_next_to_nothing() -> None:
    """Airflow reads the top of the plugins folder in each task; what is below is for the API server."""
    (file,) = (REPOSITORY / "plugins").glob("*.py")
    assert _packages(file, at_module_level=True) <= {
        "__future__",
        "airflow",
        "collections",
        "functools",
        "typing",
        "urllib",
    }
    ignored = (REPOSITORY / "plugins" / ".airflowignore").read_text(encoding="utf-8").splitlines()
    assert {f"{file.parent.name}/" for file in (REPOSITORY / "plugins").glob("*/*.py")} <= set(ignored)


def test_what_dags_import_is_quick() -> None:
    imported = {
        name
        for file in _files("dags")
        for name in _imports(ast.parse(file.read_text(encoding="utf-8")), at_module_level=True)
        if name.partition(".")[0] == "include"
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
