"""What services are given: settings files and the environment, and no secret in the files."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from include.errors import ClickmillError
from include.visitor_keys import VisitorKeys
from ops.bootstrap import REPOSITORY
from ops.home import Home, Secrets, load_secrets
from ops.services.environment import PRELOADED, render_settings, service_environment
from ops.setup.prerequisites import find_java
from tests.ops.service_ports import PORTS

JAVA = Path("/opt/jdk/bin/java")


@pytest.fixture
def keys(home: Home) -> Secrets:
    return load_secrets(home)


def environment_of(home: Home, keys: Secrets, **shell: str) -> dict[str, str]:
    return service_environment(home, PORTS, keys, JAVA, {"PATH": "/usr/bin", **shell})


def rendered_spark_settings(environment: dict[str, str]) -> dict[str, str]:
    template = (REPOSITORY / "config" / "spark-defaults.conf").read_text()
    lines = render_settings(template, environment, "spark-defaults.conf").splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    return {name: value[0].strip() for name, *value in pairs if value}


# --- settings files -------------------------------------------------------------------------------


def test_variable_is_filled_in_and_an_unset_or_empty_one_takes_its_default() -> None:
    template = "a ${A:-1}\nb ${B:-2}\nc ${C:-3}/${A:-4}\nd ${D:-}\n"

    assert render_settings(template, {"A": "x", "B": ""}, "test") == "a x\nb 2\nc 3/x\nd \n"


def test_comment_is_left_as_it_is() -> None:
    assert render_settings("# ${MISSING} is kept\n", {}, "test") == "# ${MISSING} is kept\n"


def test_every_variable_without_value_and_default_is_named() -> None:
    with pytest.raises(ClickmillError, match=r"test.conf needs a value for FIRST, SECOND: ") as error:
        render_settings("a ${FIRST}\nb ${SECOND}\nc ${THIRD:-3}\n", {}, "test.conf")

    assert error.value.exit_code == 2


def test_spark_answers_on_loopback_only_and_on_the_chosen_ports(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)
    settings = rendered_spark_settings(environment)

    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"  # where the UI binds
    assert settings["spark.connect.grpc.binding.port"] == "15003"
    assert settings["spark.ui.port"] == "4041"
    assert settings["spark.port.maxRetries"] == "0"


def test_master_memory_partitions_and_java_options_can_be_set_from_the_shell(home: Home, keys: Secrets) -> None:
    usual = rendered_spark_settings(environment_of(home, keys))
    changed = rendered_spark_settings(
        environment_of(
            home,
            keys,
            CLICKMILL_SPARK_MASTER="local[8]",
            CLICKMILL_SPARK_DRIVER_MEMORY="12g",
            CLICKMILL_SPARK_SHUFFLE_PARTITIONS="16",
            CLICKMILL_SPARK_JAVA_OPTIONS="-Xlog:gc",
        )
    )

    names = ("spark.master", "spark.driver.memory", "spark.sql.shuffle.partitions")
    assert [changed[name] for name in names] == ["local[8]", "12g", "16"]
    assert all(usual[name] and usual[name] != changed[name] for name in names)
    options = "spark.driver.extraJavaOptions"
    assert changed[options] == f"{usual[options]} -Xlog:gc"


def test_java_takes_the_options_as_they_are_meant(home: Home, keys: Secrets) -> None:
    """Java is set to leave out what it does not know: a misspelt option would do nothing, and nobody would know."""
    options = shlex.split(rendered_spark_settings(environment_of(home, keys))["spark.driver.extraJavaOptions"])
    asked = [find_java(), *options, "-XX:+PrintFlagsFinal", "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    told = {line.split()[1]: line.split()[3] for line in answer.splitlines() if "{command line}" in line}
    flags = {option[4:].partition("=") for option in options if option.startswith("-XX:") and "=" in option}
    assert {name: told[name] for name, _, _ in flags} == {name: _bytes(value) for name, _, value in flags}


def _bytes(size: str) -> str:
    """As Java prints it."""
    return str(int(size[:-1]) << 20) if size.endswith("m") else size


def test_spark_gets_local_jars_only(home: Home, keys: Secrets) -> None:
    settings = rendered_spark_settings(environment_of(home, keys))

    jars = settings["spark.driver.extraClassPath"].split(os.pathsep)
    assert jars == settings["spark.executor.extraClassPath"].split(os.pathsep)
    assert set(map(Path, jars)) == set((REPOSITORY / ".jars").glob("*.jar"))
    assert not [name for name in settings if name.startswith("spark.jars")], "nothing is copied or resolved at a start"


def test_executors_on_a_cluster_are_sent_the_jars(home: Home, keys: Secrets) -> None:
    settings = rendered_spark_settings(environment_of(home, keys, CLICKMILL_SPARK_MASTER="spark://master:7077"))

    assert settings["spark.jars"].split(",") == settings["spark.driver.extraClassPath"].split(os.pathsep)


def test_no_secret_is_in_a_settings_file_or_on_a_command_line(home: Home, keys: Secrets) -> None:
    secrets = [
        keys.spark_token,
        *(key.text.decode() for key in VisitorKeys.of(home).stored().values()),
        keys.airflow_password,
        keys.airflow_jwt_secret,
        keys.airflow_fernet_key,
    ]
    text = "\n".join(f"{n} {v}" for n, v in rendered_spark_settings(environment_of(home, keys)).items())
    conf = (REPOSITORY / "ops" / "services" / "supervisord.conf").read_text()

    assert not [secret for secret in secrets if secret in text]
    assert set(re.findall(r"\$(\w+)", conf)) == {
        "SPARK_HOME",
        "CLICKMILL_HOME",
        "CLICKMILL_PYTHON",
        "CLICKMILL_REPOSITORY",
    }
    assert set(re.findall(r"%\(ENV_(\w+)\)s", conf)) == {"CLICKMILL_SUPERVISOR_SOCKET"}


# --- the environment of the services --------------------------------------------------------------


def test_airflow_answers_on_loopback_only_and_its_addresses_follow_the_port(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)

    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW__API__PORT"] == "8081"
    assert environment["AIRFLOW__API__BASE_URL"] == "http://localhost:8081"
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://localhost:8081/execution/"


def test_airflow_and_sparks_ui_listen_where_they_are_reported_and_spark_connect_stays_on_loopback(
    home: Home, keys: Secrets
) -> None:
    environment = environment_of(home, keys, CLICKMILL_LISTEN="0.0.0.0")

    assert environment["AIRFLOW__API__HOST"] == environment["SPARK_LOCAL_IP"] == "0.0.0.0"
    assert rendered_spark_settings(environment)["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert environment["AIRFLOW__API__BASE_URL"] == "http://localhost:8081"


def test_address_to_listen_on_must_be_one(home: Home, keys: Secrets) -> None:
    with pytest.raises(ClickmillError, match=r"CLICKMILL_LISTEN='everywhere': expected an IP address") as error:
        environment_of(home, keys, CLICKMILL_LISTEN="everywhere")

    assert error.value.exit_code == 2


def test_connection_to_spark_has_the_port_the_token_and_the_only_host_that_takes_a_token(
    home: Home, keys: Secrets
) -> None:
    connection = json.loads(environment_of(home, keys)["AIRFLOW_CONN_SPARK_DEFAULT"])

    assert connection == {
        "conn_type": "spark_connect",
        "host": "localhost",
        "port": 15003,
        "password": keys.spark_token,
    }


def test_state_is_under_the_home_and_code_in_the_repository(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys)

    assert environment["CLICKMILL_HOME"] == str(home.path)
    assert environment["AIRFLOW_HOME"] == str(home.path / "airflow")
    assert environment["AIRFLOW__CORE__DAGS_FOLDER"] == str(REPOSITORY / "dags")
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(REPOSITORY)
    assert environment["TZ"] == "UTC"


def test_shell_can_change_what_is_a_matter_of_taste_and_not_what_clickmill_depends_on(
    home: Home, keys: Secrets
) -> None:
    environment = environment_of(
        home,
        keys,
        AIRFLOW__CORE__PARALLELISM="16",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="postgresql://db/airflow",
        AIRFLOW__API__HOST="0.0.0.0",
        AIRFLOW_HOME="/elsewhere",
        PYTHONPATH="/elsewhere",
    )

    assert environment["AIRFLOW__CORE__PARALLELISM"] == "16"
    assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "postgresql://db/airflow"
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW_HOME"] == str(home.airflow)
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(REPOSITORY)


@pytest.mark.slow
def test_what_tasks_import_slowly_is_in_the_process_that_they_are_forked_from_and_no_garbage_is_looked_for() -> None:
    slow = {"airflow", "deltalake", "filelock", "great_expectations", "numpy", "pandas", "pyarrow", "pygal", "pyspark"}
    code = f"""
import gc, importlib, json, sys
for module in {PRELOADED}:
    importlib.import_module(module)
kept, looked_at, before = gc.get_freeze_count(), len(gc.get_objects()), set(sys.modules)
importlib.import_module("dags.clicks_hourly")
of_dag = set(sys.modules) - before
for room in ("ingest", "aggregate", "quality", "publish"):
    importlib.import_module(f"spark_jobs.{{room}}.job")
print(json.dumps([kept, looked_at, *map(sorted, (before, of_dag, set(sys.modules) - before))]))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    kept, looked_at, *modules = json.loads(done.stdout.splitlines()[-1])
    before, of_dag, of_all = ([name.partition(".")[0] for name in names] for names in modules)
    assert not slow & (set(of_all) - set(before)), "name them in PRELOADED"
    assert len([name for name in of_dag if name not in ("dags", "include")]) <= 5, "name them in PRELOADED"
    assert not {"dags", "expectations", "include", "spark_jobs"} & set(before), "changes would not hold"
    assert kept > 100_000
    assert looked_at < kept / 10


def test_shell_that_talks_to_another_spark_does_not_lead_the_server_there(home: Home, keys: Secrets) -> None:
    environment = environment_of(
        home, keys, SPARK_REMOTE="sc://elsewhere", SPARK_CONNECT_MODE_ENABLED="1", PYSPARK_SUBMIT_ARGS="--x"
    )

    assert not {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS"} & set(environment)


def test_proxy_of_the_shell_is_not_used_for_this_machine(home: Home, keys: Secrets) -> None:
    environment = environment_of(home, keys, NO_PROXY="intranet", HTTPS_PROXY="http://proxy:3128")

    assert environment["NO_PROXY"] == "intranet,localhost,127.0.0.1,::1"
    assert environment["no_proxy"] == "localhost,127.0.0.1,::1"
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"
