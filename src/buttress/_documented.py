"""Where an estimator's page is, for the link in its HTML picture."""

from __future__ import annotations

from typing import Any

# Every release and the state of main have a folder there; see tools/publish_docs.py.
SITE = "https://buttress-ml.github.io/buttress"
# Public classes outside the top package, by the package whose page lists them.
_PACKAGES = {"TableEncoder": "buttress.tables", "TableClassifier": "buttress.tables"}


class DocumentedMixin:
    """The picture of an estimator in a notebook links to its page.

    Examples
    --------
    >>> from buttress import RampClassifier
    >>> RampClassifier()._get_doc_link().rpartition("/")[2]
    'buttress.RampClassifier.html'
    """

    _doc_link_module = "buttress"
    _doc_link_template = SITE + "/stable/api/generated/{package}.{estimator_name}.html"

    def _doc_link_url_param_generator(self, estimator: Any = None) -> dict[str, str]:
        # scikit-learn before 1.7 hands the estimator over once more
        name = type(self).__name__
        return {"package": _PACKAGES.get(name, "buttress"), "estimator_name": name}
