"""Names of the JVM: asked for once, and the same as Py4J's own."""

import pytest
from py4j.java_gateway import JavaMember, JVMView
from py4j.protocol import Py4JError

from streamgauge.spark.names import KeptClass, KeptPackage, KeptView


class Recorded:
    """A client of the JVM that keeps what it sends."""

    def __init__(self, client) -> None:
        self._client, self.commands = client, []

    def send_command(self, command, *more):
        self.commands.append(command)
        return self._client.send_command(command, *more)

    def __getattr__(self, name):
        return getattr(self._client, name)


@pytest.fixture
def asked(spark):
    """A view of the session's JVM that has no names yet, and the commands that are sent for them."""
    own = spark._jvm
    assert isinstance(own, KeptView)
    client = Recorded(own._gateway_client)
    plain = JVMView(client, own._jvm_name, own._id)
    return KeptView(plain), plain, client.commands


def test_a_name_is_asked_for_once(asked):
    view, plain, commands = asked
    for _ in range(3):
        assert str(view.functions.lit(7)) == "7"
        assert view.java.lang.Math.abs(-3) == 3
    names = [command for command in commands if command.startswith("r")]
    assert len(names) == len(set(names)) == 6, "functions, lit; java, java.lang, java.lang.Math, abs"
    assert isinstance(view.functions, KeptClass)
    assert isinstance(view.java.lang, KeptPackage)
    assert isinstance(view.functions.lit, JavaMember)
    assert view.functions._fqn == plain.functions._fqn == "org.apache.spark.sql.functions"


def test_what_may_change_is_asked_for_again(asked):
    view, _, commands = asked
    for _ in range(2):
        assert view.java.lang.Integer.MAX_VALUE == 2**31 - 1
        assert isinstance(view.java.lang.NoClassYet, KeptPackage)
    assert sum("MAX_VALUE" in command for command in commands) == 2
    assert sum("NoClassYet" in command for command in commands) == 2
    with pytest.raises(TypeError, match="not callable"):
        view.java.lang.NoClassYet()
    with pytest.raises(Py4JError, match="nothing"):
        view.java.lang.Math.nothing(1)
