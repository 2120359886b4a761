"""What every classifier around another classifier has in common."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from buttress.classifiers.parameters import check_classifier


class WrapperMixin(MetaEstimatorMixin):  # type: ignore[misc,unused-ignore]
    """Metadata go to the classifier inside, and its kinds of input and classes are accepted.

    Its parameter is called `estimator`.
    """

    estimator: Any
    estimator_: Any

    def get_metadata_routing(self) -> Any:
        """How metadata reach the classifier (see scikit-learn's user guide)."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=mapping)
        )

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the classifier's `fit`, routed as scikit-learn does where that is on."""
        if fit_params and get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **fit_params).estimator.fit)
        return fit_params

    def _check_estimator(self) -> None:
        check_classifier("estimator", self.estimator)

    def _take_features(self) -> None:
        """Number and names of features are those that `estimator_` knows, and no others."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = get_tags(self.estimator)
        tags.input_tags = inside.input_tags
        tags.classifier_tags.multi_class = inside.classifier_tags.multi_class
        return tags
