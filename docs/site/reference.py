"""The reference of `import streamgauge`, from the signatures and docstrings in the package's syntax trees."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[2] / "src" / "streamgauge"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def reference() -> str:
    """The names of the package in order, each with its signature, docstring, and public attributes and methods."""
    return "\n## Every name\n\n" + "".join(part for name, home in _homes() for part in _entry(name, home))


def files() -> list[Path]:
    """The modules in which the names are defined."""
    return sorted({file for _, home in _homes() for file in _modules(home)})


def _homes() -> list[tuple[str, Path]]:
    """Each name of the package with its module or subpackage, as its ``__init__`` lists them."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    values = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    homes = ast.literal_eval(values["_HOMES"])
    return [(name, PACKAGE.joinpath(*homes[name].split("."))) for name in ast.literal_eval(values["__all__"])]


def _modules(home: Path) -> list[Path]:
    return sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]


def _entry(name: str, home: Path) -> Iterator[str]:
    node = _definition("parse" if name == "parse_query" else name, home)
    yield f"### {name}\n\n"
    if isinstance(node, Function):
        yield _block(_signature(node, name))
        yield _text(node)
        return
    yield _text(node)
    members = [member for member in node.body if not _name(member).startswith("_")]
    if signatures := [_signature(member) for member in members if isinstance(member, Function | ast.AnnAssign)]:
        yield _block("\n".join(signatures))


def _definition(name: str, home: Path) -> ast.ClassDef | Function:
    """The class or function of a module, or of the first module of a package that defines it; KeyError."""
    for file in _modules(home):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | Function) and node.name == name:
                return node
    raise KeyError(f"{name} is not defined in {home}")


def _name(member: ast.stmt) -> str:
    if isinstance(member, ast.AnnAssign):
        return ast.unparse(member.target)
    return getattr(member, "name", "_")


def _signature(node: Function | ast.AnnAssign, name: str = "") -> str:
    """A line for an attribute, or a function without its body; a method's first docstring line as its comment."""
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node)
    about = (ast.get_docstring(node) or "").partition("\n")[0].replace("``", "")
    comment = f"  # {about}" if about and not name else ""
    if any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list):
        return f"{node.name}: {ast.unparse(node.returns)}{comment}" if node.returns else node.name
    asynchronous = "async " * isinstance(node, ast.AsyncFunctionDef)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{asynchronous}def {name or node.name}({ast.unparse(node.args)}){result}{comment}"


def _block(code: str) -> str:
    return f"```python\n{code}\n```\n\n"


def _text(node: ast.ClassDef | Function) -> str:
    """The docstring as Markdown: code in single backticks, angle brackets and asterisks as they are."""
    text = ast.get_docstring(node) or ""
    parts = re.split(r"(``.+?``)", text, flags=re.DOTALL)
    plain = [part[1:-1] if part.startswith("``") else re.sub(r"([<*_\[])", r"\\\1", part) for part in parts]
    return "".join(plain) + "\n\n"
