"""The cells of a notebook, run as Jupyter runs them, and their outputs: ``python -m tests.notebooks`` stores them.

A notebook is stored with its outputs, so that it can be read where nothing runs, and a test compares them.
"""

import ast
import io
import json
import os
import shutil
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(notebook: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in a copy of its folder."""
    result: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in result["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = shutil.copytree(notebook.parent, Path(scratch) / "examples")
        with chdir(folder):
            for number, cell in enumerate(code, 1):
                cell["execution_count"], cell["outputs"] = number, _outputs("".join(cell["source"]), names, number)
    return result


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell printed, and the value of its last expression."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    message = (
        [{"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}] if printed.getvalue() else []
    )
    if value is None:
        return message
    data = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data = {"text/html": _lines(value._repr_html_()), "text/plain": [f"<{type(value).__name__}>"]}
    return [*message, {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def stored(notebook: dict[str, Any]) -> str:
    """A notebook as its file has it."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        path.write_text(stored(run(path)), encoding="utf-8")
        print(path.name, file=sys.stderr)
