"""How often a name is used in the installed code outside its own module: a quality score that knows no text.

*Modules, functions and classes* are found by name: imports are followed through other modules' imports, star imports
too, so ``np.linalg.norm(x)`` counts for the function that numpy defines far below. What a program makes at run time
(``getattr``, names in strings, ``__getattr__``) is not seen.

*Methods* are found by their last name where their class is not named: ``frame.merge(...)`` tells no type, so its use is
shared equally among all methods called ``merge``, except in modules that define one themselves: theirs is meant there.
Such a count is an estimate.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sample_data.docstrings import parsed

LONGEST = 12
"""Parts of a dotted name that is followed. Modules that import each other by stars make ever longer ones."""


@dataclass
class Module:
    """What one file defines, imports and uses.

    Attributes:
        defined: dotted names below the module -> kind: module, class, function or method.
        bound: names bound by imports anywhere in the file -> what they stand for. stars: modules imported by a star.
        imported: modules named by import statements.
        chains: dotted names that are read, with how often, from the first name on. loose: attributes of anything else.
    """

    name: str
    package: bool
    defined: dict[str, str] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    imported: Counter[str] = field(default_factory=Counter)
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)
    loose: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Uses:
    """Uses of qualified names outside their own modules.

    Attributes:
        counts: qualified name -> uses; not whole where some are shared. kinds: qualified name -> kind.
    """

    counts: dict[str, float]
    kinds: dict[str, str]


def count_uses(files: list[tuple[str, str, Path]]) -> Uses:
    """Return how often every name defined in the files is used in the others.

    Args:
        files: (source, module, file) of `sample_data.docstrings.python_files`.
    """
    modules = {name: read_module(name, path) for _, name, path in files}
    kinds = {
        f"{module.name}.{name}" if name else module.name: kind
        for module in modules.values()
        for name, kind in module.defined.items()
    }
    methods: dict[str, list[str]] = defaultdict(list)
    for name, kind in kinds.items():
        if kind == "method":
            methods[name.rpartition(".")[2]].append(name)
    counts: dict[str, float] = defaultdict(float)
    names = Names(modules)
    shared: Counter[str] = Counter()
    for module in modules.values():
        for target, times in module.imported.items():
            if target in modules and target != module.name:
                counts[target] += times
        loose = Counter(module.loose)
        own = {name.rpartition(".")[2] for name, kind in module.defined.items() if kind == "method"}
        for chain, times in module.chains.items():
            found, rest = names.resolve(_absolute(module, chain))
            home = _home(found, modules) if found is not None else module.name
            if found is not None and home != module.name and found not in modules:
                counts[found] += times
            # what follows is an attribute of a value: of the variable, or of what the function gave
            for attribute in rest if found is not None else chain[1:]:
                loose[attribute] += times
        shared.update({name: times for name, times in loose.items() if name in methods and name not in own})
    for attribute, times in shared.items():
        for name in methods[attribute]:
            counts[name] += times / len(methods[attribute])
    return Uses(dict(counts), kinds)


class Names:
    """Definitions by any dotted name that reaches them.

    Args:
        modules: by name.
    """

    def __init__(self, modules: dict[str, Module]) -> None:
        self._modules = modules
        self._known: dict[tuple[str, ...], tuple[str | None, tuple[str, ...]]] = {}

    def resolve(self, name: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
        """Return the definition that a dotted name stands for, and the attributes behind it; None: it is no such name.

        Example:
            ``names.resolve(("numpy", "linalg", "norm", "T")) == ("numpy.linalg._linalg.norm", ("T",))``
        """
        if len(name) > LONGEST:
            return None, name
        if name not in self._known:
            self._known[name] = None, name  # what a circle of imports comes back to
            self._known[name] = self._resolve(name)
        return self._known[name]

    def _resolve(self, name: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
        place = next((k for k in range(len(name), 0, -1) if ".".join(name[:k]) in self._modules), 0)
        if not place:
            return None, name
        module, rest = self._modules[".".join(name[:place])], name[place:]
        if not rest:
            return module.name, ()
        for k in range(len(rest), 0, -1):
            if ".".join(rest[:k]) in module.defined:
                return f"{module.name}.{'.'.join(rest[:k])}", rest[k:]
        if rest[0] in module.bound:
            target = (*module.bound[rest[0]].split("."), *rest[1:])
            # a compiled module is none of these: its names would lead back here, longer each time
            return (None, name) if target[: len(name)] == name else self.resolve(target)
        for star in filter(self._modules.__contains__, module.stars):
            found = self.resolve((*star.split("."), *rest))
            if found[0] is not None and found[0] not in self._modules:
                return found
        return None, name


def read_module(name: str, path: Path) -> Module:
    """Return what a file defines, imports and uses; nothing where it does not parse."""
    module = Module(name, path.name == "__init__.py", {"": "module"})
    tree = parsed(path)
    if tree is not None:
        _define(tree, "", "module", module)
        for node in ast.walk(tree):
            _import(node, module)
        for chain in _chains(tree):
            if len(chain) > 1 and not chain[0]:
                module.loose[chain[1]] += 1
            else:
                module.chains[chain] += 1
    return module


def _define(node: ast.AST, above: str, inside: str, module: Module) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{above}.{child.name}" if above else child.name
            is_class = isinstance(child, ast.ClassDef)
            kind = "class" if is_class else "method" if inside == "class" else "function"
            module.defined.setdefault(name, kind)
            _define(child, name, "class" if is_class else "function", module)
        elif isinstance(child, (ast.If, ast.Try, ast.With)):
            _define(child, above, inside, module)


def _import(node: ast.AST, module: Module) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            module.imported[alias.name] += 1
            first = alias.name.partition(".")[0]
            module.bound.setdefault(alias.asname or first, alias.name if alias.asname else first)
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, module)
        module.imported[base] += 1
        for alias in node.names:
            if alias.name == "*":
                module.stars.append(base)
            else:
                module.imported[f"{base}.{alias.name}"] += 1
                module.bound.setdefault(alias.asname or alias.name, f"{base}.{alias.name}")


def _base(node: ast.ImportFrom, module: Module) -> str:
    """Return the absolute name of the module that is imported from."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + (1 if module.package else 0)]
    return ".".join([*parts, *filter(None, [node.module])])


def _chains(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield every dotted name that is read, once at its longest; one that begins with a value begins with ""."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield (node.id,)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            parts: list[str] = []
            inner: ast.AST = node
            while isinstance(inner, ast.Attribute):
                parts.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield (inner.id, *reversed(parts))
            else:
                yield from (("", part) for part in parts)
                waiting.append(inner)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _absolute(module: Module, chain: tuple[str, ...]) -> tuple[str, ...]:
    """Return a dotted name of a file as its imports have it."""
    if chain[0] in module.bound:
        return (*module.bound[chain[0]].split("."), *chain[1:])
    return (*module.name.split("."), *chain)


def _home(name: str, modules: dict[str, Module]) -> str:
    """Return the module that defines a name."""
    while name not in modules:
        name = name.rpartition(".")[0]
    return name
