"""The limit of BLAS threads: nested, and lifted in the end."""

from __future__ import annotations

import threading

import pytest

from buttress._threads import _controller, in_parallel, in_threads, one_blas_thread


def blas_threads():
    return {library.num_threads for library in _controller().lib_controllers}


def test_the_limit_nests_and_ends():
    before = blas_threads()
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_all_tasks_are_done_and_errors_are_raised():
    found = []
    in_parallel(found.append, range(20))
    assert sorted(found) == list(range(20))
    with one_blas_thread():
        in_parallel(found.append, [])
    before = blas_threads()
    try:
        in_parallel([].index, range(4))
    except ValueError:
        assert blas_threads() == before
    else:
        raise AssertionError("the error of a task was lost")


def test_work_inside_work_ends_though_all_threads_wait():
    def outer(i):
        return sum(in_threads(lambda j: 10 * i + j, range(5), 4))

    assert in_threads(outer, range(30), 8) == [50 * i + 10 for i in range(30)]


def test_the_first_error_ends_the_work():
    done = []

    def work(i):
        if i == 3:
            raise KeyError("no")
        done.append(i)

    with pytest.raises(KeyError):
        in_threads(work, range(10_000), 2)
    assert len(done) < 10_000


def test_an_error_in_a_helper_is_raised():
    main = threading.get_ident()
    helped = threading.Event()

    def work(i):
        if threading.get_ident() == main:
            assert helped.wait(10)
            return
        helped.set()
        raise KeyError("no")

    with pytest.raises(KeyError):
        in_threads(work, range(2), 2)
