"""Settings of sessions: the user's win, the number of partitions follows from bytes and cores."""

import json
import os
import subprocess
import sys

import pytest

from streamgauge.spark.settings import (
    HASH_JOINS,
    HASHED_ROWS,
    JAVA_OPTIONS,
    NEEDED,
    PARTITIONS,
    chosen,
    fit,
    of_user,
    partitions,
)


def test_settings_of_the_file_and_of_the_command_line_are_the_users(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n\nspark.sql.shuffle.partitions   64\nspark.a=b c\n  spark.colon: 3\nspark.empty\n"
    )
    environment = {
        "SPARK_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.a=over -c 'spark.b=x=y z' --conf=spark.c=1 pyspark-shell",
    }
    assert of_user(environment) == {
        PARTITIONS: "64",
        "spark.a": "over",
        "spark.colon": "3",
        "spark.empty": "",
        "spark.b": "x=y z",
        "spark.c": "1",
    }


def test_a_named_file_of_properties_takes_the_place_of_the_default_one(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.a 1\n")
    (tmp_path / "mine.conf").write_text("spark.b 2\n")
    arguments = f"--properties-file {tmp_path / 'mine.conf'} pyspark-shell"
    assert of_user({"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments}) == {"spark.b": "2"}


def test_the_user_wins_except_where_answers_depend_on_it():
    wanted = {"spark.a": "ours", "spark.b": "ours", JAVA_OPTIONS: "-Dours"}
    user = {"spark.a": "mine", JAVA_OPTIONS: "-Dmine", **dict.fromkeys(NEEDED, "mine")}
    assert chosen(wanted, user) == {"spark.b": "ours", JAVA_OPTIONS: "-Dours -Dmine", **NEEDED}


@pytest.mark.parametrize(("rows", "cores", "count"), [(0, 2, 2), (1000, 8, 8), (20_000_000, 2, 39), (10**9, 160, 1908)])
def test_partitions_follow_from_bytes_and_cores(rows, cores, count):
    assert partitions(rows, cores) == count


def test_a_large_job_has_more_partitions_and_joins_that_spill(spark, monkeypatch):
    own = spark.newSession()
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    own.conf.set(PARTITIONS, "2")
    fit(own, HASHED_ROWS)
    assert (own.conf.get(PARTITIONS), own.conf.get(HASH_JOINS)) == ("4", "128m")
    fit(own, 20_000_000)
    assert (own.conf.get(PARTITIONS), own.conf.get(HASH_JOINS)) == ("39", "0")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {PARTITIONS}=5 pyspark-shell")
    own.conf.set(PARTITIONS, "5")
    fit(own, 20_000_000)
    assert own.conf.get(PARTITIONS) == "5"


SHOW = f"""
import json
from streamgauge.spark.session import session
spark = session("local[1]", memory="512m")
names = ("{PARTITIONS}", "spark.ui.retainedJobs", "spark.sql.session.timeZone")
print(json.dumps([spark.conf.get(name) for name in names]))
"""


@pytest.mark.spark
@pytest.mark.server
def test_a_session_has_the_settings_that_a_user_gave_on_the_command_line():
    arguments = (
        f"--conf {PARTITIONS}=64 --conf spark.ui.retainedJobs=7 --conf spark.sql.session.timeZone=CET pyspark-shell"
    )
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == ["64", "7", "UTC"]
