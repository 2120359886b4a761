"""An import-linter contract: a module that starts with an underscore is private to its package.

`buttress.solvers.hinge._smo_block` may be imported from below `buttress.solvers.hinge` and from
nowhere else. The root's own underscored modules are the ground floor that all may use.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


def home_of_private(module: str) -> str | None:
    """The package that `module` is private to, or None for a public module.

    Examples
    --------
    >>> home_of_private("buttress.solvers.hinge._smo_block")
    'buttress.solvers.hinge'
    >>> home_of_private("buttress.solvers.hinge.smo") is None
    True
    >>> home_of_private("buttress._files") is None
    True
    """
    names = module.split(".")
    for depth, name in enumerate(names):
        if depth > 1 and name.startswith("_"):
            return ".".join(names[:depth])
    return None


class PrivateModules(Contract):
    """No package imports another package's private module."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find every import of a private module from outside its package."""
        broken = []
        for imported in graph.modules:
            home = home_of_private(imported)
            if home is None:
                continue
            broken += [
                (importer, imported)
                for importer in graph.find_modules_that_directly_import(imported)
                if importer != home and not importer.startswith(f"{home}.")
            ]
        return ContractCheck(kept=not broken, metadata={"broken": sorted(broken)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for every such import."""
        for importer, imported in check.metadata["broken"]:
            output.print_error(f"{importer} imports {imported}, which is private to its package")
