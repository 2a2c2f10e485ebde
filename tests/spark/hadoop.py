"""File systems of Hadoop that tests start themselves, on loopback: HDFS of one node, and S3 by moto's server."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Final

import pyspark.sql
import pytest

from streamgauge.formats.jvm.collection import resolve
from tests.sources.conftest import answers, free_port

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamgauge-tests"
HADOOP: Final = "3.5.0"
SPARK_JARS: Final = Path(pyspark.sql.__file__).parents[1] / "jars"
SDK: Final = "2.35.4"
"""The version of Amazon's SDK that this Hadoop was built with."""

PROGRAM: Final = """
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class MiniHdfs {
    public static void main(String[] words) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", words[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println(cluster.getURI());
        System.out.flush();
        while (System.in.read() >= 0) { }
        System.exit(0);
    }
}
"""

S3_JARS: Final = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
)
SDK_JARS: Final = tuple(
    f"software.amazon.awssdk:{part}:{SDK}"
    for part in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
)
"""The parts of the SDK that S3A uses: all of it in one jar is 700 MB."""

SPARKS_OWN: Final = (
    "netty-buffer",
    "netty-co",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "slf4j",
    "commons",
)
"""Jars that Spark has newer."""


def jars(name: str, *wanted: tuple[tuple[str, ...], bool], leave: tuple[str, ...] = ()) -> Path:
    """A folder of jars, fetched by Maven once and kept in the user's cache; each entry is libraries, and if alone.

    Jars whose names begin as in ``leave`` are left out.
    """
    if shutil.which("java") is None:
        pytest.skip(f"there is no java: checks with {name} run where it is")
    folder = CACHE / name
    if not folder.is_dir():
        making = folder.with_name(f".{name}.{os.getpid()}")
        making.mkdir(parents=True)
        for libraries, alone in wanted:
            resolve(libraries, making, alone=alone)
        for jar in making.glob("*.jar"):
            if jar.name.startswith(leave):
                jar.unlink()
        making.rename(folder)
    return folder


class Hdfs:
    """HDFS with one node of data, in a JVM that ends with its standard input; ``url`` is its root."""

    def __init__(self, folder: Path) -> None:
        own = jars(
            f"hdfs-{HADOOP}", ((f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",), True), leave=SPARKS_OWN
        )
        source = folder / "MiniHdfs.java"
        source.write_text(PROGRAM)
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{own}/*:{SPARK_JARS}/*", str(source)]
        self._process = subprocess.Popen(
            [*command, str(folder / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        line = next((text for text in map(bytes.decode, self._process.stdout) if text.startswith("hdfs://")), "")
        assert line, "the cluster ended before it said where it is"
        self.url = line.strip()

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


class S3:
    """An S3 server with one bucket; ``url`` is its root, ``settings`` are what Spark has to know."""

    def __init__(self, folder: Path) -> None:
        beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        program = shutil.which("moto_server", path=beside)
        if program is None:
            pytest.skip("moto's server is not installed: this check runs after `make setup`")
        own = jars(f"s3-{HADOOP}", (S3_JARS, True), (SDK_JARS, False), leave=SPARKS_OWN)
        port = free_port()
        with (folder / "moto.log").open("w") as log:
            self._process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
        ends = time.monotonic() + 120
        while not answers(port):
            assert self._process.poll() is None, (folder / "moto.log").read_text()
            assert time.monotonic() < ends, "moto does not answer"
            time.sleep(0.1)
        address = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT"))
        self.url = "s3a://bucket"
        self.settings = {
            "spark.jars": ",".join(map(str, own.glob("*.jar"))),
            "spark.hadoop.fs.s3a.endpoint": address,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.expect.continue": "false",  # moto answers late where a machine is loaded
        }

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(60)
