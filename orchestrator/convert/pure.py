"""Whether a model's Python says nothing but arithmetic on tensors: an allow-list over its syntax.

A split's parts become references, which run unconfined in the probe and in the judge. So what they may say is listed
here, default deny: functions of arguments, known operations of torch by name, plain Python over integers. What is
listed reads no file, starts nothing, and reaches no other object's insides.
"""

from __future__ import annotations

import ast
import builtins
import functools

from orchestrator import resources

_STATEMENTS = (
    *(ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.For, ast.If, ast.Expr, ast.Pass),
    *(ast.Import, ast.ImportFrom),
)
_DENIED = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred, ast.JoinedStr)
_IMPORTS = {"import torch", "import math", "import torch.nn.functional as F", "from torch.nn import functional as F"}
_BUILTINS = {"range", "len", "min", "max", "int", "float", "bool", "zip", "enumerate", "tuple", "list", "abs", "sum"}


def fault(text: str) -> str:
    """What it says that it may not, in one sentence; "" where it is arithmetic on tensors."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"it does not parse: {error}"
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for statement in tree.body:
        if not isinstance(statement, ast.FunctionDef | ast.Import | ast.ImportFrom):
            return f"line {statement.lineno}: at the top level only functions and imports may stand"
    for node in ast.walk(tree):
        if why := _fault_of(node, own):
            return f"line {getattr(node, 'lineno', 0)}: {why}"
    return ""


def _fault_of(node: ast.AST, own: set[str]) -> str:
    if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
        return f"{type(node).__name__} is no statement that arithmetic needs"
    if isinstance(node, ast.Import | ast.ImportFrom) and ast.unparse(node) not in _IMPORTS:
        return f"`{ast.unparse(node)}`: only {', '.join(sorted(_IMPORTS))} may be imported"
    if isinstance(node, _DENIED):
        return f"`{ast.unparse(node)}` is no arithmetic"
    if isinstance(node, ast.Attribute) and node.attr not in _attributes():
        return f".{node.attr} is not among the operations that a part may use"
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        return "a part has no decorators"
    if isinstance(node, ast.Name) and node.id in dir(builtins) and node.id not in _BUILTINS:
        return f"{node.id} is no name of arithmetic"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in own | _BUILTINS:
        return f"{node.func.id} is neither one of the parts nor one of {', '.join(sorted(_BUILTINS))}"
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
        return f"`{ast.unparse(node.func)}` is called, which is no name"
    return ""


@functools.cache
def _attributes() -> frozenset[str]:
    """What may stand behind a dot: operations of torch and of tensors, their facts, dtypes."""
    return frozenset((resources.templates() / "convert" / "arithmetic.txt").read_text(encoding="utf-8").split())
