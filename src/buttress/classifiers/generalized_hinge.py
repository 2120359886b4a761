"""The generalised hinge machine with a reject option."""

from __future__ import annotations

from buttress.classifiers._cost_hinges import CostHinges, generalized_cost_hinges
from buttress.classifiers._stacked_hinge import BaseStackedHingeClassifier
from buttress.losses import GeneralizedHinge


class GeneralizedHingeClassifier(BaseStackedHingeClassifier):
    """Kernel machine with a reject option by the generalised hinge loss.

    Parameters
    ----------
    d : float in (0, 0.5], default=0.2
        Cost of giving no answer, when a wrong one costs 1. At 0.5 every row is answered.
    C : float > 0, default=1.0
        Weight of the losses against the norm.
    costs : array-like of shape (2, 3), optional
        Instead of `d`, for two classes: ``costs[j, k]`` is paid for answering ``classes_[k]`` on
        a row of ``classes_[j]``, and ``costs[j, 2]`` for not answering it.
    threshold : "auto" or float >= 0, default="auto"
        Rows with ``|f| <= threshold`` are rejected. "auto" is 0.5 (every value in ``[d, 1-d]``
        has the same excess risk bound); none at ``d = 0.5``.
    kernel, gamma, degree, coef0, kernel_params
        The kernel: a scikit-learn pairwise name, "precomputed" or a callable;
        ``exp(-gamma ||x - z||^2)`` by default, ``gamma`` "scale", "auto", "median" or a number.
    fit_intercept : bool, default=True
        Whether f has a constant term.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights per label.
    target_coverage, target_risk, confidence, certify_on, noise_rates
        A band for a share of answers, or one that keeps an error among them with a promise, as in
        `DoubleHingeClassifier`.
    tol : float, default=1e-10
        Bound on the violation of the optimality conditions on the scale of f (1e-4 at least
        for float32 data).
    max_iter : int, default=1000
        Limit on the solver's outer steps, here of 10 000 pair steps each, per binary problem.
    cache_size : float, default=1000
        Megabytes for the kernel: the whole matrix when it fits; else its latest rows, or none
        where computing them again is cheaper (a Gaussian kernel of up to 64 features).
    probability : bool, default=False
        Whether `predict_proba` is wanted. Costs five more fits, of four fifths of the rows each;
        `noise_` then holds the noise model behind it.
    random_state : int, RandomState or None, default=None
        For the rows kept out by `target_coverage` or `target_risk`.

    Attributes
    ----------
    classes_, thresholds_, rejection_rate_, risk_certificate_, dual_coef_, intercept_, support_, \
support_vectors_, n_support_, coef_, gamma_, kernel_, objective_, duality_gap_, duality_gaps_, \
n_iter_, solver_, n_features_in_, feature_names_in_
        As in `DoubleHingeClassifier`.

    Notes
    -----
    The problem, with ``f = g + b``::

        min 1/2 ||g||^2 + C sum_i w_i ( [1 - y_i f(x_i)]_+ + (1-2d)/d [-y_i f(x_i)]_+ )

    Convex: two stacked hinges, solved by pair steps over two variables per row; at
    ``d = 0.5`` it is the support vector machine. Time grows between n^2 and n^3; memory n^2 or
    `cache_size`. More than two classes: one machine per class against the rest; a row is
    answered when exactly one class is accepted (its score lies above the threshold).

    With `costs` the loss of a row passes through the costs of the wrong answer, of refusing and of
    the right one at ``f = -u, 0, v`` (in the order of its class), so that the minimiser of the
    expected loss is the cheapest decision; ``v/u`` is the geometric mean of the limits between
    which both losses are convex, and the band is ``(-u/2, v/2)``. The unit of the costs does not
    matter.

    References
    ----------
    P. L. Bartlett and M. H. Wegkamp, "Classification with a reject option using a hinge
    loss", Journal of Machine Learning Research 9, 2008.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = GeneralizedHingeClassifier(d=0.1, C=10.0).fit(X, y)
    >>> model.predict_or_reject([[-1.0, 1.0], [0.5, 0.25]], reject_label=-1)
    array([ 0, -1])
    """

    def _terms(self) -> tuple[tuple[float, float], ...]:
        return GeneralizedHinge(self.d).terms

    def _cost_hinges(self) -> CostHinges:
        return generalized_cost_hinges(self.costs)

    def _auto_threshold(self) -> float:
        return 0.5
