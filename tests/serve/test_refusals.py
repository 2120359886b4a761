"""Requests that do not fit: a 4xx, one clear line, and nothing else."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from buttress.serve.running import check_host, is_loopback, read_token

TOKEN = "a-very-secret-token"
GOOD = {"x0": 1.0, "x1": 2.0, "x2": 3.0, "x3": 4.0, "city": "Oslo"}

BAD = [
    (b"", 400, "not JSON"),
    (b"{", 400, "not JSON"),
    (b"\xff\xfe{}", 400, "UTF-8"),
    (b"[" * 100_000, 400, "nested too deeply"),
    (b"null", 422, "expected"),
    (b"3", 422, "expected"),
    (b"{}", 422, '{"rows": [...]}'),
    (b"[]", 422, "no rows"),
    (b'{"rows": 7}', 422, "a list of rows"),
    (b'{"rows": [7]}', 422, "row 1 is neither"),
    (b'{"rows": [[1]]}', 422, "row 1 has 1 values, expected 5"),
    (b'{"rows": [[1]], "columns": "x"}', 422, "list of names"),
    (b'{"rows": [[1, 1]], "columns": ["a", "a"]}', 422, "twice"),
    (b'[{"x0": NaN}]', 400, "NaN"),
    (b'[{"x0": 1, "x0": 2}]', 400, "twice"),
    ([{"x0": 1}], 422, "'x1', 'x2', 'x3' and 1 more"),
    ([GOOD | {"more": 1}], 422, "no column 'more'"),
    ([GOOD, {"x0": 1}], 422, "row 2 has no column 'x1'"),
    ([GOOD, GOOD | {"z": 1}], 422, "row 2 has the column 'z'"),
    ([GOOD, 7], 422, "row 2 is not an object"),
    ([GOOD | {"x0": "many"}], 422, "row 1: column 'x0' is numeric, but holds 'many'"),
    ([GOOD | {"x0": True}], 422, "column 'x0' is numeric"),
    ([GOOD | {"x0": [1]}], 422, "column 'x0' is numeric"),
    ([GOOD | {"x0": None}], 422, "row 1: column 'x0' has no value"),
    ([GOOD | {"city": None}], 422, "row 1: column 'city' has no value"),
    ([GOOD | {"city": ["Oslo"]}], 422, "is text, not a list"),
    ([GOOD | {"city": "Paris"}], 422, "new category 'Paris'"),
    ([GOOD | {"x0": 10**400}], 422, "too large"),
    (json.dumps([GOOD]).replace("1.0", "1e999").encode(), 422, "too large to compute with"),
    ([GOOD | {"x0": -1e150}], 422, "row 1: column 'x0' is too large to compute with"),
    (json.dumps([GOOD]).replace("1.0", "9" * 5000).encode(), 400, "not JSON"),
]


@pytest.mark.parametrize(("body", "status", "words"), BAD)
def test_what_is_wrong_is_said_in_one_line(models, serving, body, status, words):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with serving(models / "reject.skops") as client:
        answer = client.post("/v1/predict", content=content)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "empty"),
        ("x0,x0\n1,2\n", "twice"),
        ("x0,x1\n1\n", "line 2 has 1 fields"),
        ("x0,x1,x2,x3,city\n", "no rows"),
        ("x0,x1,x2,x3,city\n1,2,3,four,Oslo\n", "column 'x3' is numeric, but holds 'four'"),
        ("x0,x1,x2,x3,city\n1,2,3,inf,Oslo\n", "column 'x3' is too large"),
        ("x0,x1,x2,x3,city\n1,2,3,,Oslo\n", "column 'x3' has no value"),
        ('x0,"x1\n', "not CSV"),
    ],
)
def test_bad_csv(models, serving, body, words):
    with serving(models / "reject.skops") as client:
        answer = client.post("/v1/predict", content=body, headers={"content-type": "text/csv"})
    assert answer.status_code in (400, 422)
    assert words in answer.json()["error"]


def test_limits(models, serving):
    with serving(models / "reject.skops", most_rows=3, most_body=2000) as client:
        assert client.post("/v1/predict", json=[GOOD] * 3).status_code == 200
        assert client.post("/v1/predict", json=[GOOD] * 4).status_code == 413
        assert client.post("/v1/predict", content=b"x" * 2001).status_code == 413

        def slowly():
            for _ in range(300):
                yield b" " * 10

        # without a declared length the body is counted as it comes
        assert client.post("/v1/predict", content=slowly()).status_code == 413
        assert client.post("/v1/explain", json=[GOOD] * 4).status_code == 413
    with serving(models / "reject.skops") as client:
        assert client.post("/v1/explain", json=[GOOD] * 101).status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/xml"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"host": "evil.test"}, 421),
        ({"host": "[::1"}, 421),
        ({"origin": "http://evil.test"}, 403),
    ],
)
def test_headers_that_are_refused(models, serving, headers, status):
    with serving(models / "reject.skops") as client:
        answer = client.post("/v1/predict", content=json.dumps([GOOD]), headers=headers)
        assert answer.status_code == status
        assert "error" in answer.json()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/predict", 405),
        ("POST", "/v1/predict/", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/v1/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/review/", 404),
        ("POST", "/v1/learn", 404),
        ("DELETE", "/v1/model", 405),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/reject/versions/1", 404),
    ],
)
def test_addresses_that_are_none(models, serving, method, path, status):
    with serving(models / "reject.skops") as client:
        answer = client.request(method, path, follow_redirects=False)
        assert answer.status_code == status
        assert "error" in answer.json()


def test_the_token(models, serving, caplog):
    caplog.set_level("DEBUG")
    with serving(models / "reject.skops", token=TOKEN) as client:
        assert client.post("/v1/predict", json=[GOOD]).status_code == 200
        for given in (
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            "Bearer ü",
        ):
            answer = client.post(
                "/v1/predict", json=[GOOD], headers={"authorization": given.encode()}
            )
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in answer.text
        client.headers.pop("authorization")
        for path in ("/metrics", "/docs", "/openapi.json", "/v1/model", "/v2/models/reject"):
            assert client.get(path).status_code == 401
        for path in ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"):
            assert client.get(path).status_code == 200
    assert TOKEN not in caplog.text


def test_where_it_may_listen(tmp_path):
    check_host("127.0.0.1", None)
    check_host("0.0.0.0", TOKEN)
    for host in ("0.0.0.0", "192.168.0.1", "example.org", "::"):
        assert not is_loopback(host)
        with pytest.raises(ValueError, match="--token-file"):
            check_host(host, None)
    (tmp_path / "t").write_text(f"  {TOKEN}\n")
    assert read_token(tmp_path / "t") == TOKEN
    for bad in ("short", "x" * 20 + "\u00fc", "a b\nc" * 10):
        (tmp_path / "t").write_text(bad)
        with pytest.raises(ValueError, match="at least 16"):
            read_token(tmp_path / "t")


def test_lenient_takes_what_strict_refuses(models, serving):
    with serving(models / "reject.skops", lenient=True) as client:
        answer = client.post("/v1/predict", json=[GOOD | {"more": 1, "city": "Paris"}])
        assert answer.status_code == 200
        # also where only one of the rows has more, or the target
        plain = client.post("/v1/predict", json=[GOOD, GOOD]).json()
        for more in ({"more": 1}, {"y": "no"}):
            for rows in ([GOOD, GOOD | more], [GOOD | more, GOOD]):
                assert client.post("/v1/predict", json=rows).json() == plain


def test_rows_to_learn_need_a_label_each_where_lenient(models, serving, tmp_path):
    with serving(models / "online.skops", lenient=True, learn=tmp_path / "log") as client:
        rows = [GOOD | {"y": "no", "more": 1}, GOOD | {"y": "yes"}]
        assert client.post("/v1/learn", json=rows).json()["rows"] == 2
        answer = client.post("/v1/learn", json=[*rows, GOOD])
        assert (answer.status_code, answer.json()["error"]) == (422, "row 3: the label is missing")


def test_a_kept_column_may_be_in_one_row_only(models, serving, tmp_path):
    kept = {"kept": ("id",), "review": tmp_path / "review.sqlite", "refuse_below": 1e9}
    with serving(models / "online.skops", **kept) as client:
        answer = client.post("/v1/predict", json=[GOOD, GOOD | {"id": 7}])
        assert answer.status_code == 200, answer.text
        store = client.service.refused.store
        rows = [json.loads(item.content)["row"] for item in store.page(1, 10)[0]]
        assert {row["id"] for row in rows} == {None, 7}
        answer = client.post("/v1/predict", json=[GOOD, GOOD | {"more": 7}])
        assert (answer.status_code, "'more'" in answer.text) == (422, True)


def test_the_target_among_the_columns_is_not_looked_at(models, serving):
    with serving(models / "reject.skops") as client:
        with_label = client.post("/v1/predict", json=[GOOD | {"y": "no"}]).json()
        assert with_label == client.post("/v1/predict", json=[GOOD]).json()


def random_value(rng):
    return rng.choice(
        [None, True, -1, 0.5, 1e308, 10**30, "", "x" * 50, "Oslo", "\u0000", "<b>", "'; --"]
    )


def malformed(rng):
    """One request out of many kinds that do not fit."""
    kind = rng.integers(9)
    headers = {}
    if kind == 0:
        body = rng.bytes(int(rng.integers(0, 200)))
    elif kind == 1:
        text = json.dumps([GOOD] * int(rng.integers(1, 4)))
        body = text[: int(rng.integers(0, len(text)))].encode()
    elif kind == 2:
        row = {str(k): random_value(rng) for k in rng.choice(list("abxyz"), 3)}
        body = json.dumps({"rows": [row]}, default=str).encode()
    elif kind == 3:
        depth = int(rng.integers(1, 3000))
        body = b"[" * depth + b"]" * depth
    elif kind == 4:
        name = str(rng.choice(list(GOOD)))
        value = rng.choice(
            ["1e999", "-1e999", "NaN", "Infinity", "null", "[]", "{}", "true", '"q"']
        )
        body = json.dumps([GOOD]).replace(json.dumps(GOOD[name]), str(value), 1).encode()
        if name == "city" and value in ("true",):
            body = b"{}"
    elif kind == 5:
        body = b"x0,x1\n" + rng.bytes(30)
        headers = {"content-type": "text/csv"}
    elif kind == 6:
        body = json.dumps([GOOD]).encode("utf-16")
    elif kind == 7:
        body = json.dumps([GOOD]).encode()
        headers = {"content-type": str(rng.choice(["text/html", "image/png", ";;", "a/b; c"]))}
    else:
        body = b"[" + b",".join([json.dumps(GOOD).encode()] * 50) + b"]"
    return body, headers


def fuzz(client, number, seed=0):
    rng = np.random.default_rng(seed)
    paths = ["/v1/predict", "/v1/explain", "/v1/learn", "/v2/models/online/infer"]
    for _ in range(number):
        body, headers = malformed(rng)
        answer = client.post(str(rng.choice(paths)), content=body, headers=headers)
        assert 400 <= answer.status_code < 500, (answer.status_code, body[:200], answer.text[:200])
        assert set(answer.json()) == {"error"}
        assert 0 < len(answer.json()["error"]) < 300
        assert "\n" not in answer.json()["error"]


def test_malformed_requests_are_4xx(models, serving, tmp_path):
    with serving(models / "online.skops", most_rows=40, learn=tmp_path / "log") as client:
        fuzz(client, 400)
        assert client.service.learning.seq == 0


@pytest.mark.slow
def test_ten_thousand_malformed_requests(models, serving, tmp_path):
    import resource

    with serving(models / "online.skops", most_rows=40, learn=tmp_path / "log") as client:
        fuzz(client, 2000, seed=1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fuzz(client, 10_000, seed=2)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 40_000  # kB: no growth beyond what caches of Python take


def test_a_slow_body_is_given_up(models, serving):
    from starlette.requests import Request

    from buttress.serve.app import Api
    from buttress.serve.errors import RequestError
    from buttress.serve.service import Service, Settings

    service = Service(models / "reject.skops", Settings(timeout=0.1))

    async def receive():
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def read():
        scope = {"type": "http", "method": "POST", "headers": [], "path": "/"}
        await Api(service).read_body(Request(scope, receive))

    with pytest.raises(RequestError, match="did not arrive in time") as caught:
        asyncio.run(read())
    assert caught.value.status == 408
