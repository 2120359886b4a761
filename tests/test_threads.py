"""The limit of BLAS threads: nested, and lifted in the end."""

from __future__ import annotations

from buttress._threads import _controller, in_parallel, one_blas_thread


def blas_threads():
    return {
        library.num_threads for library in _controller().select(user_api="blas").lib_controllers
    }


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
