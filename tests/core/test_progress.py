"""Progress: shares of steps and of their parts, times left, and who is told."""

import builtins
import io
import sys

import numpy as np
import pytest

import dpppsynth as dps
from dpppsynth.core import progress
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Clock, Step, announced, duration, each_of, inner_progress, line, lines
from dpppsynth.evaluation import evaluate

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def clock(*times):
    return Clock(iter(times).__next__)


class TestSteps:
    def test_each_item_is_told_with_the_share_of_those_before(self):
        said = []
        assert list(each_of(said.append, "drawing", "abcd")) == ["a", "b", "c", "d"]
        assert said == ["drawing"] * 4
        assert [step.share for step in said] == [0, 0.25, 0.5, 0.75]

    def test_parts_of_parts_add_up(self):
        said = []
        year = inner_progress(said.append, "year 2", 1, 4)
        inner = inner_progress(year, "type a", 1, 2)
        inner(Step("drawing", 0.5))
        inner("saving")
        assert said[-2:] == ["year 2: type a: drawing", "year 2: type a: saving"]
        assert [step.share for step in said] == [0.25, 0.25 + 0.125, 0.25 + 0.1875, 0.25 + 0.125]


class TestTimeLeft:
    def test_it_follows_the_pace_since_the_first_share(self):
        """Time before the first share, such as that of reading, is no part of the pace."""
        found = clock(100.0, 110.0, 190.0)
        assert found.words("drawing", 0.5) == "drawing (50 %)"
        assert found.words("drawing", 0.6) == "drawing (60 %, some 40 s left)"
        assert found.words("drawing", 0.7) == "drawing (70 %, some 2 min left)"

    def test_another_series_of_shares_begins_anew(self):
        found = clock(0.0, 10.0, 20.0, 22.0)
        found.words("search", 0.0)
        found.words("search", 0.8)
        assert found.words("posteriors", 0.0) == "posteriors"
        assert found.words("posteriors", 0.5) == "posteriors (50 %, some 2 s left)"

    def test_a_step_without_a_share_ends_the_series(self):
        found = clock(0.0, 10.0, 12.0)
        found.words("search", 0.0)
        assert found.words("drawing", None) == "drawing"
        assert found.words("search", 0.9) == "search (90 %)"

    def test_hours_and_minutes(self):
        assert [duration(t) for t in (0.1, 89, 90, 5399, 5400)] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


class TestWhoIsTold:
    @pytest.mark.parametrize("wrong", [5, True, "print", [print]])
    def test_others_than_functions_are_refused(self, wrong):
        with pytest.raises(InputError, match=r"^progress: must be a function of one text"), announced(wrong):
            pass

    def test_scripts_are_told_nothing(self, capsys):
        with announced(None) as say:
            say(Step("drawing", 0.5))
        assert say is progress.silent
        assert capsys.readouterr() == ("", "")

    def test_false_is_silence_where_somebody_types(self, monkeypatch):
        monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
        with announced(False) as say:
            assert say is progress.silent

    def test_a_release_at_a_prompt_shows_a_line(self, monkeypatch):
        """The line comes after a second: what takes less shows nothing."""
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        points = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (50, 2)), WINDOW)
        synthesizer = dps.LaplaceSynthesizer(1.0, alpha=50.0, spacing=250.0, postprocess="plain")
        synthesizer.release(points)
        assert screen.getvalue() == ""
        monkeypatch.setattr("dpppsynth.core.progress.line", lambda after: line())
        synthesizer.rehearse(WINDOW, n=50)
        assert "surrogate pattern" in screen.getvalue()

    def test_errors_leave_no_line_behind(self, monkeypatch):
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)

        def fail():
            with line() as say:
                say("drawing")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        # The cursor is shown again.
        assert screen.getvalue().rstrip().endswith("\x1b[2K") or "\x1b[?25h" in screen.getvalue()


class TestLines:
    def test_a_step_is_written_once_and_again_when_it_takes_long(self, monkeypatch):
        now = iter([0.0, *np.arange(0.5, 100.0, 0.5)]).__next__
        monkeypatch.setattr("time.monotonic", now)
        written = []
        with lines(written.append, every=10.0) as say:
            say("reading")
            for k in range(40):
                say(Step("drawing", k / 40))
        assert written[:2] == ["reading", "drawing"]
        assert 2 <= len(written) - 2 <= 5
        assert all(" s left)" in words for words in written[2:])

    def test_counting_is_one_step(self):
        written = []
        with lines(written.append, every=10.0) as say:
            for k in range(5):
                say(Step(f"{k} of 5 runs", k / 5))
        assert written == ["0 of 5 runs"]

    def test_numbers_that_grow_are_one_step(self, monkeypatch):
        """And the time left is told of them."""
        now = iter([0.0, *np.arange(0.5, 100.0, 0.5)]).__next__
        monkeypatch.setattr("time.monotonic", now)
        written = []
        with lines(written.append, every=10.0) as say:
            for k in range(1, 41):
                say(Step(f"{k * 500:,} reports counted".replace(",", " "), k / 40))
        assert written[0] == "500 reports counted"
        assert 1 <= len(written) - 1 <= 5
        assert all(" s left)" in words for words in written[1:])


class TestReleases:
    def test_levels_share_the_whole(self):
        rng = np.random.default_rng(2)
        points = dps.PointPattern(rng.uniform(0, 1000, (60, 2)), WINDOW, {"year": np.repeat([1, 2], 30)})
        said = []
        dps.LGCPSynthesizer(1.0, alpha=50.0, mechanism="tents", inference="laplace").release_by(
            points, by="year", levels=[1, 2], progress=said.append
        )
        shares = [step.share for step in said]
        assert shares == sorted(shares)
        assert shares[0] == 0
        assert all(step.startswith("year 1") == (step.share < 0.5) for step in said)

    def test_evaluation_counts_patterns_and_yardsticks(self):
        rng = np.random.default_rng(3)
        original, *synthetic = (dps.PointPattern(rng.uniform(0, 1000, (40, 2)), WINDOW) for _ in range(4))
        said = []
        evaluate(original, synthetic, confidential=False, progress=said.append)
        assert [step.share for step in said] == pytest.approx(np.arange(13) / 13)
