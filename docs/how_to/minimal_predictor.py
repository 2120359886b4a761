"""Predict with a model of ``buttress export --format json``, by the standard library alone."""

import json
import math
import struct
import sys


def kernel(s, x):
    if s["kernel"] in ("rbf", "laplacian"):
        power = 2 if s["kernel"] == "rbf" else 1
        apart = [sum(abs(a - b) ** power for a, b in zip(x, z, strict=True)) for z in s["vectors"]]
        return [math.exp(-s["gamma"] * v) for v in apart]
    f = {"linear": float, "sigmoid": math.tanh, "poly": lambda v: v ** s["degree"]}[s["kernel"]]
    return [f(s.get("gamma", 1.0) * dot(x, z) + s.get("coef0", 0.0)) for z in s["vectors"]]


def trees(s, x):
    x, leaves = [struct.unpack("f", struct.pack("f", v))[0] if s["single"] else v for v in x], []
    for feature, threshold, left, right, missing_left in s["trees"]:
        k = 0
        while (i := feature[k]) >= 0:
            k = left[k] if (missing_left[k] if x[i] != x[i] else x[i] <= threshold[k]) else right[k]
        leaves.append(right[k])
    return [sum(column) for column in zip(*leaves, strict=True)]


def softmax(s, x):
    parts = [x[k : k + s["width"]] for k in range(0, len(x), s["width"])]
    powers = [[math.exp(v - max(part)) for v in part] for part in parts]
    return [v / sum(part) for part in powers for v in part]


dot = lambda a, b: sum(v * w for v, w in zip(a, b, strict=True))  # noqa: E731
OPS = {"kernel": kernel, "trees": trees, "softmax": softmax} | {
    "affine": lambda s, x: [dot(w, x) + b for w, b in zip(s["weights"], s["offset"], strict=True)],
    "scaled": lambda s, x: [(v - s["centre"][i]) / s["scale"][i] for i, v in enumerate(x)],
    "columns": lambda s, x: [x[i] for i in s["index"]],
    "joined": lambda s, *xs: [v for x in xs for v in x],
    "cos": lambda s, x: [math.cos(v) for v in x],
    "abs": lambda s, x: [abs(v) for v in x],
    "log": lambda s, x: [math.log(v) for v in x],
    "sigmoid": lambda s, x: [0.5 + 0.5 * math.tanh(v / 2) for v in x],
    "clipped": lambda s, x: [min(max(v, s["low"]), s["high"]) for v in x],
    "times": lambda s, x, y: [v * y[0] for v in x],
    "gap": lambda s, x: [(sorted(x)[-1] - sorted(x)[-2]) / 2],
    "lone": lambda s, x: [min(sorted(x)[-1], -sorted(x)[-2])],
    "largest": lambda s, x: [max(x)],
    "chosen": lambda s, x: [float(i == x.index(max(x))) for i in range(len(x))],
    "flushed": lambda s, x: [v if abs(v) > s["rounding"] else 0.0 for v in x],
    "imputed": lambda s, x: [f if v != v else v for v, f in zip(x, s["fill"], strict=True)],
    "one_hot": lambda s, x: [float(x[0] == c) for c in s["categories"]],
}


def predict(model, row):
    """Label (None when refused) and probabilities (None when the model has none) of one row."""
    values, answer = [[v if isinstance(v, str) else float(v) for v in row]], model["answer"]
    for s in model["steps"]:
        values.append(OPS[s["op"]](s, *(values[i] for i in s["of"])))
    best = values[answer["ranked"]].index(max(values[answer["ranked"]]))
    sure = values[answer["confidence"]][0] > answer["refused_up_to"][best]
    proba = answer["probabilities"] and values[answer["probabilities"]]
    return model["classes"][best] if sure else None, proba


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        model = json.load(file)
    for line in sys.stdin:  # one JSON list per row
        print(json.dumps(predict(model, json.loads(line))))
