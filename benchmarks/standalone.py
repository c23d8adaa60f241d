"""Makes a kernel file of a package stand alone, by its text: nothing of the package is imported or run.

Owns the mechanical part of judging kernels from elsewhere. What the file imports from its own package is copied in
(functions, classes, constants, with what they need), or, where it only asks about the machine or wraps a kernel for
the package's own purposes, replaced as SUBSTITUTES says. Every change is named in `Standalone.said`; a file that would
need more than that is returned with the reason, not half done. Does not judge.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_COPIED = 60  # definitions; a file that needs more is a part of a framework, not a kernel file

# Names of the packages that mean a question about the machine, answered for CUDA; the value is an expression.
ANSWERS = {
    "infer_device": "'cuda'",
    "infer_device_arch": "'default'",
    "is_npu_available": "False",
    "is_hip": "False",
    "compare_version": "True",
    "get_npu_core_count": "1",
}
VALUES = {
    "torch_device_fn": "torch.cuda",
    "device_context": "torch.cuda.device",
    "tl_extra_shim": "triton.language.extra.cuda.libdevice",
}
DEVICE = {"name": "'cuda'", "vendor_name": "'nvidia'"}  # attributes of flag_gems.runtime.device
DROPPED_DECORATORS = {
    "libentry": "the launcher's cache (@libentry)",
    "ensure_contiguous": "@ensure_contiguous, which calls .contiguous() on tensor arguments",
    "amp_custom_fwd": "@amp_custom_fwd",
    "amp_custom_bwd": "@amp_custom_bwd",
}
# What a tuning table holds is data of the package: the policy sees the form of it, and such a file is not judged.
TABLES = {
    "get_tuned_config": "[triton.Config({})]",
    "ops_get_configs": "[triton.Config({})]",
    "get_expand_config": "[triton.Config({})]",
    "get_heuristic_config": "{}",
}
STUCK = {
    "pointwise_dynamic": "its kernel's text is generated when it runs",
    "code_cache_dir": "its kernel's text is generated when it runs",
    "IndentedBuffer": "its kernel's text is generated when it runs",
    "use_tl_extra": "which math library it means is decided by the package when it runs",
    "dispatch": "which implementation it means is decided by the package when it runs",
}
_CALLED = {*ANSWERS, *TABLES}
_SPECIAL = {*_CALLED, *VALUES, *DROPPED_DECORATORS, *STUCK}


@dataclass(frozen=True)
class Standalone:
    """A file's text without its package, and what was changed; `stuck` says why there is none."""

    text: str = ""
    said: tuple[str, ...] = ()
    stuck: str = ""
    complete: bool = True  # nothing was left out that the kernel needs to run


class _StuckError(Exception):
    """It cannot be made to stand alone."""


def standalone(file: Path, site: Path, package: str, tables: Mapping[str, str] | None = None) -> Standalone:
    """The file as text that imports nothing of `package`, which is installed below `site`.

    tables: what a tuning function of the package gives for this file, as an expression, where the caller knows.
    """
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        work = _Work(site, package, tables or {}, {node.name for node in tree.body if isinstance(node, _Def)})
        work.bound = {
            name for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for name in _bound(node)
        }
        body = work.adapt(tree.body, file)
        own = [statement for statement in body if isinstance(statement, ast.Import | ast.ImportFrom)]
        rest = [statement for statement in body if statement not in own]
        body = [*work.needed_imports(body), *own, *work.copied.values(), *rest]
        text = ast.unparse(ast.fix_missing_locations(ast.Module(list(_without_unused_imports(body)), [])))
    except (_StuckError, SyntaxError) as error:
        return Standalone(stuck=str(error))
    said = tuple(dict.fromkeys(work.said))
    return Standalone(text + "\n", said, complete=not any(line.startswith("left out") for line in said))


_Def = (ast.FunctionDef, ast.ClassDef)


@dataclass
class _Work:
    """One file on its way: what was copied into it so far."""

    site: Path
    package: str
    tables: Mapping[str, str]
    own: set[str]
    bound: set[str] = field(default_factory=set)  # by the file's own imports
    imports: dict[str, ast.stmt] = field(default_factory=dict)
    copied: dict[str, ast.stmt] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def adapt(self, body: list[ast.stmt], file: Path) -> list[ast.stmt]:
        """The statements, with every name of the package resolved."""
        foreign, modules = self._foreign(body, file)
        out: list[ast.stmt] = []
        for statement in body:
            if self.is_foreign_import(statement) or _is_future(statement):
                continue
            if _distributed_import(statement):
                out += self._without_distributed(statement)
                continue
            adapted = _Substitution(self, foreign, modules).visit(copy.deepcopy(statement))
            out += _as_list(_Folding().visit(adapted))
        return out

    def _without_distributed(self, statement: ast.stmt) -> list[ast.stmt]:
        """What the file does where torch has no DTensor; of a plain import, nothing."""
        self.said.append("answered: no tensor is a DTensor")
        handlers = statement.handlers if isinstance(statement, ast.Try) else []
        return [part for handler in handlers for part in handler.body if not isinstance(part, ast.Pass)]

    def needed_imports(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The imports that came with what was copied in, and those that answers need."""
        used = {
            node.id for part in [*self.copied.values(), *body] for node in ast.walk(part) if isinstance(node, ast.Name)
        }
        answers = [name for name in ("torch", "triton") if name in used and name not in self.bound | set(self.imports)]
        return [*(ast.Import([ast.alias(name)]) for name in answers), *self.imports.values()]

    def _foreign(self, body: list[ast.stmt], file: Path) -> tuple[dict[str, tuple[Path, str]], dict[str, Path]]:
        """Names that stand for something of the package, and names that stand for one of its modules."""
        names: dict[str, tuple[Path, str]] = {}
        modules: dict[str, Path] = {}
        for statement in (node for top in body for node in ast.walk(top)):
            if not self.is_foreign_import(statement) or not isinstance(statement, ast.ImportFrom):
                continue
            base = self._base(statement, file)
            for alias in statement.names:
                bound = alias.asname or alias.name
                module = self._submodule(base, alias.name)
                if module is not None:
                    modules[bound] = module
                else:
                    found = _module(base)
                    if found is None:
                        raise _StuckError(f"{self.package} has no module for {ast.unparse(statement)}")
                    names[bound] = (found, alias.name)
        return names, modules

    def _submodule(self, base: Path, name: str) -> Path | None:
        """The module of that name, unless the package itself binds the name to something else."""
        own = _module(base) if base.is_dir() else None
        if own is None or own.name != "__init__.py":
            return None
        tree = ast.parse(own.read_text(encoding="utf-8"))
        here = (None, ".".join(base.relative_to(self.site).parts))  # `from PACKAGE import MODULE` binds the module
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module not in here]
        bound = {bound for node in imports for bound in _bound(node)}
        return None if name in bound or _definition(tree, name) else _module(base / name)

    def is_foreign_import(self, node: ast.AST) -> bool:
        """Whether it imports something of the package. Stuck where it imports the package itself."""
        if isinstance(node, ast.Import) and any(alias.name == self.package for alias in node.names):
            raise _StuckError(f"it imports {self.package} as a whole")
        if isinstance(node, ast.ImportFrom):
            return bool(node.level) or (node.module or "").split(".")[0] == self.package
        return isinstance(node, ast.Import) and any(a.name.split(".")[0] == self.package for a in node.names)

    def _base(self, node: ast.ImportFrom, file: Path) -> Path:
        if node.level:
            start = file.parent
            for _ in range(node.level - 1):
                start = start.parent
            return start.joinpath(*(node.module or "").split(".")) if node.module else start
        return self.site.joinpath(*(node.module or "").split("."))

    def copy(self, module: Path, name: str, depth: int = 0) -> None:
        """Copy a definition of the package in, with what it needs."""
        if name in self.copied:
            return None
        if name in self.own or len(self.copied) >= MAX_COPIED or depth > 12:
            raise _StuckError(f"{name} of {self._shown(module)} cannot be copied in: the name is taken, or too much is")
        tree = ast.parse(module.read_text(encoding="utf-8"))
        definition = _definition(tree, name)
        foreign, modules = self._foreign(tree.body, module)
        if definition is None:
            if name not in foreign:
                raise _StuckError(f"{self._shown(module)} defines no {name} that could be copied in")
            return self.copy(*foreign[name], depth + 1)
        foreign |= {special: (module, special) for special in _SPECIAL if _definition(tree, special) is not None}
        self.copied[name] = ast.Pass()  # being copied; what it needs may need it
        adapted = _Folding().visit(_Substitution(self, foreign, modules, depth).visit(copy.deepcopy(definition)))
        for used in sorted(set(_names(adapted))):
            if used != name and _definition(tree, used) is not None:
                self.copy(module, used, depth + 1)
            for statement in tree.body:
                if isinstance(statement, ast.Import | ast.ImportFrom) and self._brings(statement, used):
                    self.imports.setdefault(used, _only(statement, used))
        del self.copied[name]  # behind what it needs
        self.copied[name] = adapted
        self.said.append(f"copied in: {name} of {self._shown(module)}")
        return None

    def _brings(self, statement: ast.Import | ast.ImportFrom, used: str) -> bool:
        """Whether it brings, from elsewhere, a name that the file itself does not import."""
        return not self.is_foreign_import(statement) and used in _bound(statement) - self.bound

    def _shown(self, module: Path) -> str:
        return str(module.relative_to(self.site))


class _Substitution(ast.NodeTransformer):
    """Replaces the package's names in one statement."""

    def __init__(
        self, work: _Work, foreign: dict[str, tuple[Path, str]], modules: dict[str, Path], depth: int = 0
    ) -> None:
        self._work, self._foreign, self._modules, self._depth = work, foreign, modules, depth

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """An import of the package inside a function or a try: its names are resolved where they are used."""
        return ast.Pass() if self._work.is_foreign_import(node) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Decorators that only wrap are dropped."""
        node.decorator_list = [decorator for decorator in node.decorator_list if not self._dropped(decorator)]
        return self.generic_visit(node)

    def _dropped(self, decorator: ast.expr) -> bool:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = self._meaning(called)
        if name in DROPPED_DECORATORS:
            self._work.said.append(f"dropped: {DROPPED_DECORATORS[name]}")
            return True
        return False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Questions about the machine are answered."""
        name = self._meaning(node.func)
        if name in _CALLED:
            given = self._work.tables.get(name)
            answer = given or ANSWERS.get(name) or TABLES[name]
            how = "answered for CUDA" if name in ANSWERS else "put in" if given else "left out"
            self._work.said.append(f"{how}: {ast.unparse(node)} is {answer}")
            return ast.parse(answer, mode="eval").body
        if name == "libtuner":
            self._work.said.append("replaced: @libtuner by @triton.autotune, with its configs and key alone")
            kept = [keyword for keyword in node.keywords if keyword.arg in ("configs", "key")]
            node = ast.Call(ast.parse("triton.autotune", mode="eval").body, node.args, kept)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`module.name` of the package becomes the copied name."""
        if ast.unparse(node) == "torch.distributed.tensor.DTensor":
            return self._no_dtensor()
        if self._meaning(node.value) == "device" and node.attr in DEVICE:
            self._work.said.append(f"answered for CUDA: device.{node.attr} is {DEVICE[node.attr]}")
            return ast.parse(DEVICE[node.attr], mode="eval").body
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            return self._resolved(self._modules[node.value.id], node.attr, node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name of the package becomes the copied one, or what it stands for."""
        if node.id in self._foreign:
            return self._resolved(*self._foreign[node.id], node)
        if node.id in self._modules:
            raise _StuckError(f"it hands on {node.id}, a module of {self._work.package}")
        return node

    def _resolved(self, module: Path, name: str, node: ast.expr) -> ast.expr:
        if name in STUCK:
            raise _StuckError(f"{name}: {STUCK[name]}")
        if name in VALUES:
            self._work.said.append(f"answered for CUDA: {name} is {VALUES[name]}")
            return ast.parse(VALUES[name], mode="eval").body
        if name == "device" and module.parent.name == "runtime":
            raise _StuckError("device: it asks the package which device there is")
        self._work.copy(module, name, self._depth + 1)
        return ast.Name(name, ast.Load())

    def _no_dtensor(self) -> ast.expr:
        self._work.said.append("answered: no tensor is a DTensor")
        return ast.Tuple([], ast.Load())

    def _meaning(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id in self._foreign:
            return self._foreign[node.id][1]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._modules:
            return node.attr
        return ""


def reduced(text: str, entry: str) -> str:
    """What the entry reaches by name, in the text's order; other definitions and what they import are left out."""
    tree = ast.parse(text)
    defined = {name: node for node in tree.body for name in _defines(node)}
    kept = [node for node in tree.body if not _defines(node)]  # what runs on import
    needed, pending = set[int](), [entry, *(name for node in kept for name in _names(node))]
    while pending:
        node = defined.get(pending.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            pending += _names(node)
    body = [node for node in tree.body if id(node) in needed or not _defines(node)]
    body = [node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return ast.unparse(ast.Module(list(_without_unused_imports(body)), [])) + "\n"


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, _Def):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _module(path: Path) -> Path | None:
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _definition(tree: ast.Module, name: str) -> ast.stmt | None:
    for node in tree.body:
        if isinstance(node, _Def) and node.name == name:
            return node
        if name in _defines(node):
            return node
    return None


def _bound(statement: ast.Import | ast.ImportFrom) -> set[str]:
    return {alias.asname or alias.name.split(".")[0] for alias in statement.names}


def _only(statement: ast.Import | ast.ImportFrom, name: str) -> ast.stmt:
    only = copy.deepcopy(statement)
    only.names = [alias for alias in only.names if (alias.asname or alias.name.split(".")[0]) == name]
    return only


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _distributed_import(statement: ast.stmt) -> bool:
    """`try: import torch.distributed.tensor`, which binds what `isinstance(x, DTensor)` asks for."""
    return isinstance(statement, ast.Try | ast.Import | ast.ImportFrom) and any(
        (isinstance(node, ast.Import) and any(a.name.startswith("torch.distributed") for a in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.distributed"))
        for node in ast.walk(statement)
    )


class _Folding(ast.NodeTransformer):
    """Takes the branch that the answers decide, everywhere."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """An `if` over answered questions is the branch that is taken."""
        self.generic_visit(node)
        known = _truth(node.test)
        if known is None:
            return node
        return (node.body if known else node.orelse) or [ast.Pass()]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The same within an expression."""
        self.generic_visit(node)
        known = _truth(node.test)
        return node if known is None else node.body if known else node.orelse

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        """`try: import A / except: import B` is the first."""
        self.generic_visit(node)
        plain = all(isinstance(part, ast.Import | ast.ImportFrom | ast.Pass) for part in node.body)
        return list(node.body) if plain else node


def _as_list(result: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return result if isinstance(result, list) else [result] if isinstance(result, ast.stmt) else []


def _truth(test: ast.expr) -> bool | None:
    match test:
        case ast.Constant(bool(value)):
            return value
        case ast.UnaryOp(ast.Not(), operand):
            inner = _truth(operand)
            return None if inner is None else not inner
        case ast.BoolOp(op, values):
            known = [_truth(value) for value in values]
            decisive = isinstance(op, ast.Or)
            if decisive in known:
                return decisive
            return None if None in known else not decisive
        case ast.Call(ast.Name("isinstance"), [_, ast.Tuple([])]):
            return False
        case ast.Compare(ast.Constant(left), [ast.Eq()], [ast.Constant(right)]):
            return bool(left == right)
    return None


def _without_unused_imports(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    used = {name for statement in body for name in _names(statement)}
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [a for a in statement.names if (a.asname or a.name.split(".")[0]) in used]
            if not statement.names:
                continue
        yield statement
