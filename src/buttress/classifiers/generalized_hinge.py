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
    target_coverage : float in (0, 1], optional
        Set the band for this share of answers, whatever `threshold` says: a quarter of the
        rows is kept out of training, and the band is set on them. A new row is then answered
        with probability at least `target_coverage` (and, without ties, at most one over their
        number more), whatever the distribution. With more than two classes the band is one
        for half the distance of the two largest scores. Weights do not enter the coverage.
    target_risk : float in (0, 1), optional
        Set the band so that at most this share of the answers is wrong, with probability
        `confidence` over the draw of the rows it is tested on, whatever the distribution: see
        `risk_certificate_`. Where that cannot be promised no row gets an answer, and a warning
        says how many more rows would be needed. With more than two classes the band is one for
        half the distance of the two largest scores. Weights do not enter.
    confidence : float in (0, 1), default=0.9
        Probability with which the promise of `target_risk` is kept.
    certify_on : {"held_out", "folds"}, default="held_out"
        "held_out" keeps a quarter of the rows out of training for the test of `target_risk`,
        which is exact. "folds" trains on all rows and tests on what models of five folds say of
        the others; the promise is then about those models, and approximate.
    noise_rates : "estimate", pair, LabelNoise or array-like of shape (n_classes, 2), optional
        Lower and upper limit of the share of wrong labels (in all, or among the rows that truly
        belong to each class): `target_risk` is then promised for the true labels. "estimate"
        takes the rates, with what the labels leave open about them, from `buttress.noise`; the
        promise then rests on that model too.
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
    classes_ : ndarray of shape (n_classes,)
        The labels.
    thresholds_ : ndarray of shape (2,), or (n_classes, 2)
        The rejection band on the scale of `decision_function`.
    rejection_rate_ : float
        Share of the training rows (weighted) that are rejected.
    risk_certificate_ : RiskCertificate
        With `target_risk`: ``n`` answered rows of the test, ``errors`` among them, the upper
        ``bound`` of the error, and more.
    dual_coef_, intercept_, support_, support_vectors_, n_support_, coef_
        The expansion ``f(x) = sum dual_coef_ k(support_vectors_, x) + intercept_``; `coef_` for
        the linear kernel only. Their first axis is the binary problem.
    gamma_ : float or None
        The kernel's width.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    objective_ : float, or ndarray of shape (n_classes,)
        ``1/2 ||f||^2 + C sum loss``.
    duality_gap_ : float
        Exact duality gap, the worst class.
    duality_gaps_ : ndarray of shape (n_problems,)
        Per class.
    n_iter_ : int
        Pair steps, the largest over the classes.
    solver_ : str
        "smo".
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
