"""Numba's compiler, without the work that functions of this package do not need.

A solver is one function that Python calls, an *outer* one, and dozens of *inner* ones that only
compiled functions call. Numba would link, optimise and make machine code of every function alone,
with all that it calls in turn. Here that is done once, when the outer function is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite.binding import Linkage
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import AnnotateTypes, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

# Looking for closures and for sums of whole arrays, which compiled functions here do not have
# (both would be compiled all the same), and comments on types, which nobody reads: together a
# seventh of the time before LLVM.
_UNNEEDED = InlineClosureLikes, NopythonRewrites, AnnotateTypes
# Instructions from which on a function is worth a call: copied to where it is called from, with
# its loops, it would be optimised there again.
_LONG = 200


class _Options(Flags):
    """Options of a compilation that are compared in no time.

    Numba looks up every overloaded function by the options in force. Its own have one hash for
    all, and are compared one by one: a tenth of the time to compile.
    """

    __slots__ = ("_key",)

    def __init__(self, copied: Flags | None = None) -> None:
        super().__init__(copied)
        chosen = copied._values if copied is not None else {}
        # of a copy, which is what lookups see: nobody changes it
        self._key = tuple((name, str(chosen[name])) for name in sorted(chosen))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, options: object) -> bool:
        return isinstance(options, _Options) and self._key == options._key


class _Unlinked(JITCodeLibrary):  # pragma: no cover (runs while compiling)
    """The code of one inner function: what it calls, and machine code, are left to its callers."""

    _linking_libraries: list[Any]
    _shared_module: Any

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if sum(len(block.instructions) for block in function.blocks) >= _LONG:
                function.attributes.add("noinline")
        super().add_ir_module(module)

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # the linker keeps one of many
        self._finalized = True

    def own_module(self) -> Any:
        """The code of the function alone."""
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """The code with all that it calls, for callers that Numba compiles in its own way."""
        if self._shared_module is None:
            whole = self._final_module.clone()
            _link(whole, self._linking_libraries)
            self._shared_module = whole
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        return 0

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment(self._codegen)


class _WithoutEnvironment:  # pragma: no cover (runs while compiling)
    """A code generator for code that is in no memory, so that nothing can be set there."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing."""


class _Linked(JITCodeLibrary):  # pragma: no cover (runs while compiling)
    """The code of an outer function and of all inner ones that it calls in turn."""

    _linking_libraries: list[Any]

    def _optimize_functions(self, module: Any) -> None:
        # with the rest, once all is linked
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        linked = _link(self._final_module, self._linking_libraries)
        # what Numba does on loading code, in versions that have it
        if hasattr(self, "_reload_init"):
            for library in linked:
                self._reload_init.update(library._reload_init)
        self._linking_libraries = []
        super().finalize()


def _link(module: Any, libraries: Iterable[Any]) -> list[Any]:  # pragma: no cover
    """Link libraries into a module, and what they call in turn, each once; those linked."""
    linked: list[Any] = []
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library in linked:
            continue
        linked.append(library)
        if isinstance(library, _Unlinked):
            waiting += library._linking_libraries
            module.link_in(library.own_module(), preserve=True)
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)
    return linked


def _check_that_none_is_owned(state: Any, returned: Any) -> None:  # pragma: no cover
    """Refuse a function without references that would lose one, or return one it does not have.

    That it makes no array itself is checked by Numba.
    """
    received = [
        signature.return_type
        for expression, signature in state.calltypes.items()
        if getattr(expression, "op", "") == "call"
        and isinstance(state.typemap[expression.func.name], types.Dispatcher)
    ]
    if any(_holds_arrays(kind) for kind in [returned, *received]):
        name = state.func_id.func_name
        raise TypeError(f"{name} owns arrays: decorate it with allocates=True")


def _holds_arrays(kind: Any) -> bool:  # pragma: no cover (runs while compiling)
    if isinstance(kind, types.BaseTuple):
        return any(_holds_arrays(member) for member in kind.types)
    return isinstance(kind, types.Array)


class Inner(Compiler):  # pragma: no cover (runs while compiling)
    """Numba's compiler for functions that only compiled functions call."""

    library = _Unlinked

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, *further: Any) -> None:
        returned, flags, names = further
        super().__init__(typing, target, library, args, returned, _Options(flags), names)

    def define_pipelines(self) -> list[PassManager]:
        pipelines: list[PassManager] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (kind, why) for kind, why in pipeline.passes if kind not in _UNNEEDED
            ]
            pipeline.finalize()
        return pipelines

    def compile_extra(self, function: Any) -> Any:
        if self.state.library is None:
            codegen = self.state.targetctx.codegen()
            self.state.library = self.library(codegen, function.__qualname__)
            self.state.library.enable_object_caching()
        result = super().compile_extra(function)
        if not self.state.flags.nrt:
            _check_that_none_is_owned(self.state, result.signature.return_type)
        return result


class Outer(Inner):  # pragma: no cover (runs while compiling)
    """Numba's compiler for functions that Python calls."""

    library = _Linked
