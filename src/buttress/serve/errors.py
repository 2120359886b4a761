"""Requests that cannot be answered: a status and one clear line."""

from __future__ import annotations


class RequestError(Exception):
    """What is wrong with a request.

    Parameters
    ----------
    message : str
        One line that names the row, column or limit at fault.
    status : int
        The HTTP status: 400 not readable, 413 too large, 422 does not fit the model, 429 later.
    headers : dict, optional
        More headers of the answer.
    """

    def __init__(
        self, message: str, status: int = 422, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status
        self.headers = headers or {}
