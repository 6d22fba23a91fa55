"""One wording of a release that stopped on its way."""

from __future__ import annotations

import pytest

from whereish.errors import LedgerUnavailable, NotFinished, NotWritten
from whereish.publish.release.messages import reason, report_after_release


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space left on device", "/secret/path"), "No space left on device"),
        (OSError("not in the system's words"), "OSError"),
        (NotWritten("the file system of the output x cannot be used"), "the file system of"),
        (LedgerUnavailable("the ledger cannot be used"), "the ledger cannot be used"),
    ],
)
def test_the_reason_of_a_failure(error, why):
    assert reason(error).startswith(why)
    assert "secret" not in reason(error)


@pytest.mark.parametrize(("charged", "end"), [("", "full)"), (" and charged", "full): finish it")])
def test_a_failure_after_the_release_says_that_it_is_released(charged, end):
    with (
        pytest.raises(NotFinished) as caught,
        report_after_release("out.csv", "it is not synced", charged=charged, go_on="finish it"),
    ):
        raise OSError(28, "full")
    message = f"the output out.csv was released{charged}, but it is not synced ({end}"
    assert str(caught.value) == message


def test_other_errors_pass_through():
    with pytest.raises(KeyError), report_after_release("out.csv", "it is not synced"):
        raise KeyError("a fault of ours")
