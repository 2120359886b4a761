"""Numbers for Prometheus, written in its text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that grows, by labels.

    Examples
    --------
    >>> counter = Counter("rows_total", "Rows answered.")
    >>> counter.add(3, path="/v1/predict")
    >>> print(counter.text())
    # HELP rows_total Rows answered.
    # TYPE rows_total counter
    rows_total{path="/v1/predict"} 3
    """

    kind = "counter"

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Count up."""
        key = tuple(labels.items())
        self.values[key] = self.values.get(key, 0) + amount

    def lines(self) -> Iterable[str]:
        """One line per value."""
        for labels, value in sorted(self.values.items()):
            yield f"{self.name}{_braces(labels)} {_number(value)}"

    def text(self) -> str:
        """With its help and type."""
        head = [f"# HELP {self.name} {self.about}", f"# TYPE {self.name} {self.kind}"]
        return "\n".join([*head, *self.lines()])


class Gauge(Counter):
    """A number that is asked for when it is written.

    Parameters
    ----------
    name, about : str
    ask : callable
        Gives one number, or a dict from a label's value to numbers.
    label : str
        Name of that label.
    """

    kind = "gauge"

    def __init__(
        self,
        name: str,
        about: str,
        ask: Callable[[], float | dict[str, float] | None],
        label: str = "",
    ) -> None:
        super().__init__(name, about)
        self._ask, self._label = ask, label

    def lines(self) -> Iterable[str]:
        """One line per value; none while there is no number."""
        values = self._ask()
        if isinstance(values, dict):
            for value, number in values.items():
                yield f"{self.name}{_braces(((self._label, value),))} {_number(number)}"
        elif values is not None:
            yield f"{self.name} {_number(values)}"


class Histogram(Counter):
    """Seconds, in buckets, by path."""

    kind = "histogram"

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, about)
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, seconds: float, path: str) -> None:
        """Count one request."""
        counts = self._counts.setdefault(path, [0] * (len(_SECONDS) + 1))
        counts[bisect_left(_SECONDS, seconds)] += 1
        self._sums[path] = self._sums.get(path, 0.0) + seconds

    def lines(self) -> Iterable[str]:
        """Cumulative buckets, sum and count."""
        for path, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip([*map(str, _SECONDS), "+Inf"], counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_braces((('path', path), ('le', bound)))} {total}"
            yield f"{self.name}_sum{_braces((('path', path),))} {self._sums[path]:.9g}"
            yield f"{self.name}_count{_braces((('path', path),))} {total}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    written = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + written + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
