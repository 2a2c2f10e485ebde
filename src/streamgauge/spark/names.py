"""A cache of the names of Java classes and packages.

Py4J asks the JVM for the meaning of every name of ``jvm.functions.lit`` at every call. For a name that Spark's imports
or packages may have, the JVM then searches hundreds of jars, which costs more than the call itself. Packages, classes
and static methods are therefore cached.
"""

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


def keep_names(gateway: "JavaGateway") -> JVMView:
    """Give the gateway a view of its JVM that caches look-ups; call it after the imports into the view."""
    gateway.jvm = KeptView(gateway.jvm)
    return gateway.jvm


class KeptView(JVMView):  # type: ignore[misc]
    """The JVM's packages and imported classes."""

    def __init__(self, view: JVMView) -> None:
        self.__dict__.update(vars(view))

    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


class KeptPackage(JavaPackage):  # type: ignore[misc]
    """A package that caches its packages and classes at their first use."""

    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


class KeptClass(JavaClass):  # type: ignore[misc]
    """A class that caches its static methods at their first use; static fields are read each time."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def _kept(owner: object, name: str, member: object) -> object:
    """The package or class with a cache of its names.

    A capitalised name that is not a class yet may become one (``addJar``), and is not cached.
    """
    if isinstance(member, JavaClass):
        owner.__dict__[name] = member = KeptClass(member._fqn, member._gateway_client)
    elif isinstance(member, JavaPackage):
        member = KeptPackage(member._fqn, member._gateway_client, member._jvm_id)
        if name.islower():
            owner.__dict__[name] = member
    return member
