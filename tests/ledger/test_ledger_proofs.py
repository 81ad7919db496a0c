"""Right to settle and record, and amounts counted: all that was authorised, until a certificate proves the purchase."""

import copy
import itertools
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers import chained, events_of, unrecorded

from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, PrivacyCheckError
from dpppsynth.ledger import Authorisation, Ledger, compare
from dpppsynth.ledger.authorisation import hashed, proof_of
from dpppsynth.ledger.certificates import public_size
from dpppsynth.ledger.document import dump, identify, parse
from dpppsynth.ledger.history import replay, stored
from dpppsynth.privacy import GaussianDP, PureDP, ReplaceOne
from dpppsynth.release import certificate, load_release
from dpppsynth.release.folder_writing import certificate_dict
from dpppsynth.release.verify import check_claim
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer

SQUARE = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
OTHER = Window.rectangle(0, 0, 1000, 999, "EPSG:27700")
POINTS = PointPattern(np.random.default_rng(3).uniform(0, 999, (60, 2)), SQUARE)
LARGE = LaplaceSynthesizer(1.0, relation=ReplaceOne(), spacing=500.0, postprocess="plain")
SMALL = replace(LARGE, epsilon=0.25)
STORED = Path(__file__).parents[1] / "data" / "releases"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=2.0, delta=1e-5, relation=ReplaceOne())


def authorised(ledger, **known):
    """An authorisation of all that `LARGE` may spend."""
    return ledger.authorise(LARGE.ceiling(SQUARE), mechanism="laplace", domain=SQUARE, **known)


def settled(ledger, entry, synthesizer=SMALL):
    ledger.settle(entry, synthesizer.check(SQUARE, n=60), mechanism="laplace-cells", n=60)


def signed(entry, synthesizer=SMALL, pattern=POINTS, rng=None):
    """The certificate of a release that was really made, naming an entry."""
    return certificate_dict(replace(synthesizer.release(pattern, rng), entry=str(entry)))


def unchanged(ledger, spent=1.0):
    assert Ledger.open(ledger.path).spent == ledger.spent == pytest.approx(spent, abs=1e-4)


class TestWhoMaySettle:
    @pytest.mark.parametrize("taken", [True, False])
    def test_nobody_else(self, ledger, taken):
        """The forgery: whoever reads the ledger knows the names of its entries."""
        entry, other = authorised(ledger, taken=taken, n=60), authorised(ledger)
        (known, *_) = ledger.releases
        forged = (known.id, Authorisation(known.id, "0" * 64), Authorisation(known.id, other.token))
        hashes = (known.claim, proof_of(entry.token, "settled"), proof_of(entry.token, "measured"))
        forged = (*forged, *(Authorisation(known.id, each) for each in hashes))
        before = ledger.path.read_bytes()
        for name in forged:
            for use in (
                lambda name=name: settled(ledger, name),
                lambda name=name: ledger.give_up(name),
                lambda name=name: ledger.record(name, signed(name), domain=SQUARE),
                lambda name=name: SMALL.plan(SQUARE, n=60).release(POINTS, ledger=ledger, entry=name),
            ):
                with pytest.raises(InputError, match=r"^entry: (an authorisation is used by|it was taken up)"):
                    use()
        assert ledger.path.read_bytes() == before
        settled(ledger, entry)

    def test_what_settling_shows_does_not_record(self, ledger):
        entry = authorised(ledger)
        settled(ledger, entry)
        proof = events_of(ledger.path.read_bytes())[-1]["proof"]
        with pytest.raises(InputError, match=r"^entry: an authorisation is used by"):
            ledger.record(Authorisation(entry, proof), signed(entry), domain=SQUARE)
        unchanged(ledger)

    def test_the_secret_is_in_no_file_before_it_is_spent(self, ledger, tmp_path):
        entry = authorised(ledger)
        settled(ledger, entry)
        assert entry.token not in ledger.path.read_text()
        assert entry.token not in repr(entry) + str(entry) + f"{entry}" + json.dumps(entry) + repr(ledger.releases)
        assert (type(str(entry)), len({authorised(ledger).token, entry.token})) == (str, 2)
        release = LARGE.release(POINTS, ledger=Ledger.create(tmp_path / "o.json", epsilon=2.0, delta=0, alpha=1.0))
        assert type(release.entry) is str

    def test_a_recording_that_failed_frees_nothing(self, ledger, monkeypatch):
        """The disk is full when a release of 1.0 is recorded: what was written of it does not pass for its secret."""
        left = []

        def full(descriptor):
            if (last := events_of(ledger.path.read_bytes())[-1])["kind"] == "measured":
                left.append(last["proof"])
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.warns(InformationWarning, match="could not be recorded"):
            LARGE.release(POINTS, ledger=ledger)
        monkeypatch.undo()
        (entry,) = ledger.releases
        assert (entry.state, entry.settlement) == ("authorised", None)
        for use in (settled, lambda ledger, entry: ledger.record(entry, signed(entry), domain=SQUARE)):
            with pytest.raises(InputError, match=r"^entry: "):
                use(ledger, Authorisation(entry.id, left[0]))
        assert sorted(path.name for path in ledger.path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]
        unchanged(ledger)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])
    def test_both_parts_go_to_another_process(self, ledger, copied):
        entry = copied(authorised(ledger))
        SMALL.plan(SQUARE, n=60).release(POINTS, ledger=Ledger.open(ledger.path), entry=entry)
        assert ledger.releases[0].state == "measured"


class TestWhatCounts:
    def test_settling_alone_frees_nothing(self, ledger):
        entry = authorised(ledger)
        settled(ledger, entry, replace(SMALL, epsilon=0.001))
        unchanged(ledger)
        (found,) = ledger.releases
        assert (found.guarantee.profile, found.state) == (PureDP(1.0), "authorised")
        assert found.settlement == replace(SMALL, epsilon=0.001).check(SQUARE, n=60)
        # Its theorem and assumptions are known, and those it was authorised on are still needed.
        assert found.guarantee.theorem == SMALL.check(SQUARE, n=60).theorem
        assert {*SMALL.check(SQUARE, n=60).assumptions, *LARGE.ceiling(SQUARE).assumptions} == {
            *found.guarantee.assumptions
        }

    def test_a_recorded_release_counts_as_what_was_bought(self, ledger):
        entry = authorised(ledger)
        SMALL.plan(SQUARE, n=60).release(POINTS, ledger=ledger, entry=entry)
        unchanged(ledger, 0.25)
        assert ledger.releases[0].guarantee.assumptions == SMALL.check(SQUARE, n=60).assumptions

    @pytest.mark.parametrize("error", [OSError("disk"), InputError("another process")])
    def test_a_release_that_could_not_be_recorded_counts_in_full(self, ledger, error):
        entry = authorised(ledger)
        with pytest.warns(InformationWarning, match="at all that was authorised"):
            release = SMALL.plan(SQUARE, n=60).release(POINTS, ledger=unrecorded(ledger.path, error), entry=entry)
        unchanged(ledger)
        with pytest.raises(InputError, match=r"^entry: "):
            ledger.settle(release.entry, replace(SMALL, epsilon=0.001).check(SQUARE, n=60))
        with pytest.raises(InputError, match=r"^entry: "):
            ledger.record(release.entry, certificate_dict(release), domain=SQUARE)
        unchanged(ledger)

    @pytest.mark.parametrize("adaptive", [False, True])
    def test_what_an_adaptive_filter_counts(self, tmp_path, adaptive):
        ledger = Ledger.create(tmp_path / "a.json", epsilon=9.0, delta=1e-5, relation=ReplaceOne(), adaptive=adaptive)
        other = Ledger.create(tmp_path / "b.json", epsilon=9.0, delta=1e-5, relation=ReplaceOne(), adaptive=adaptive)
        entry = authorised(ledger)
        full = ledger.spent
        settled(ledger, entry)
        assert ledger.spent == full
        ledger.record(entry, signed(entry), domain=SQUARE)
        SMALL.release(POINTS, ledger=other)
        assert ledger.spent == other.spent < full

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("forge", "why"),
        [
            (lambda cert: cert["guarantee"]["profile"].update(epsilon=0.2), "follow|differs"),
            (lambda cert: cert["parameters"].update(epsilon=0.2), "scale = .* follows"),
            (lambda cert: cert["parameters"].update(scale=5.0 * cert["parameters"]["scale"]), "scale = .* follows"),
            (lambda cert: cert["parameters"].update(n=61), "another n"),
            (lambda cert: cert["parameters"].pop("n"), "another n"),
            (lambda cert: cert["parameters"].update(mesh={"builder": "no"}), "."),
            (lambda cert: cert["guarantee"].update(assumes=[]), "."),
            (lambda cert: cert["guarantee"]["relation"].update(name="add-remove"), "other pairs"),
            (lambda cert: cert["domain"].update(fingerprint=OTHER.fingerprint()), "another domain"),
            (lambda cert: cert.update(mechanism="laplace-tents"), "another mechanism"),
            (lambda cert: cert.update(ledger="0" * 64), "another entry"),
            (lambda cert: cert.update(seeded=True), "seeded"),
            (lambda cert: cert.pop("ledger"), "not that of a release"),
            (lambda cert: cert.pop("guarantee"), "not that of a release"),
            (lambda cert: cert.clear(), "not that of a release"),
        ],
    )
    def test_what_is_no_proof(self, ledger, forge, why):
        entry = authorised(ledger)
        settled(ledger, entry)
        cert, before = signed(entry), ledger.path.read_bytes()
        forge(cert)
        with pytest.raises(InputError, match=f"^certificate: it proves nothing about this entry.*({why})"):
            ledger.record(entry, cert, domain=SQUARE)
        assert ledger.path.read_bytes() == before
        unchanged(ledger)
        ledger.record(entry, signed(entry), domain=SQUARE)
        unchanged(ledger, 0.25)

    @pytest.mark.parametrize("cert", [None, 7, "certificate.json", []])
    def test_what_is_no_certificate(self, ledger, cert):
        entry = authorised(ledger)
        with pytest.raises(InputError, match=r"^certificate: .*not that of a release"):
            ledger.record(entry, cert, domain=SQUARE)
        with pytest.raises(InputError, match=r"^domain: "):
            ledger.record(entry, signed(entry), domain="here")
        with pytest.raises(InputError, match="another domain"):
            ledger.record(entry, signed(entry), domain=OTHER)

    def test_a_dearer_release_than_was_settled(self, ledger):
        entry = authorised(ledger)
        settled(ledger, entry)
        with pytest.raises(InputError, match="claims more than was settled"):
            ledger.record(entry, signed(entry, LARGE), domain=SQUARE)
        unchanged(ledger)

    def test_a_seeded_release_proves_nothing(self, ledger):
        entry = authorised(ledger)
        with pytest.raises(InputError, match="seeded"):
            ledger.record(entry, signed(entry, rng=1), domain=SQUARE)

    def test_every_kind_of_release_proves_what_it_bought(self, tmp_path):
        """By levels, of patterns, and of a statistic, where less was spent than had been authorised."""
        ledger = Ledger.create(tmp_path / "l.json", epsilon=30.0, delta=1e-3, relation=ReplaceOne())
        years = PointPattern(POINTS.xy, SQUARE, {"year": np.repeat([1, 2], 30)})
        for synthesizer, dear in ((SMALL, replace(SMALL, epsilon=3.0)),):
            plan = synthesizer.plan_by(SQUARE, by="year", levels=[1, 2], n={1: 30, 2: 30})
            entry = ledger.authorise(dear.ceiling(SQUARE), mechanism="strata", domain=SQUARE)
            plan.release(years, ledger=ledger, entry=entry)
        dear = KernelSynthesizer(3.0, delta=1e-6, relation=ReplaceOne(), bandwidth=3000.0)
        plan = replace(dear, epsilon=1.0, bandwidth=None).plan(SQUARE, n=60)
        entry = ledger.authorise(plan.guarantee, mechanism="kernel", domain=SQUARE)
        plan.release(POINTS, ledger=ledger, entry=entry)
        assert [each.state for each in ledger.releases] == ["measured"] * 2
        assert ledger.releases[0].guarantee.epsilon() == pytest.approx(0.25, abs=1e-4)


KINDS = sorted(path.name for path in STORED.iterdir() if path.is_dir())


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_of_every_kind_is_derived_again(kind):
    """And no other one: a smaller claim, or a smaller budget, does not follow from the same parameters."""
    cert = certificate.read(STORED / kind)
    domain = load_release(STORED / kind).domain
    assert check_claim(cert, domain).holds
    secret = cert["guarantee"]["relation"]["name"] in ("add-remove", "add-remove-person")
    assert (public_size(cert) is None) == secret
    cert["guarantee"]["profile"] = PureDP(1e-6).to_dict()
    assert not check_claim(cert, domain).holds


class TestEstimator:
    def released(self, ledger, tmp_path):
        folder = SMALL.release(POINTS, ledger=ledger).save(tmp_path / "public")
        return certificate.read(folder)

    def test_an_estimator_edited_afterwards_is_found(self, ledger, tmp_path):
        cert = self.released(ledger, tmp_path)
        assert all(check.holds for check in compare(ledger, cert))
        cert["parameters"]["estimator"]["postprocess"] = "clip"
        cert["content_hash"] = certificate.content_hash(cert)
        failed = [check for check in compare(ledger, cert) if not check.holds]
        assert [check.name for check in failed] == ["record"]
        assert "another estimator" in failed[0].detail

    def test_of_levels_too(self, ledger, tmp_path):
        years = PointPattern(POINTS.xy, SQUARE, {"year": np.repeat([1, 2], 30)})
        release = SMALL.release_by(years, by="year", levels=[1, 2], ledger=ledger)
        cert = certificate.read(release.save(tmp_path / "public"))
        assert all(check.holds for check in compare(ledger, cert))
        cert["parameters"]["strata"][1]["parameters"]["estimator"]["postprocess"] = "clip"
        assert [check.holds for check in compare(ledger, cert)] == [True, False, True]


def read(raw):
    path = Path("ledger.json")
    return replay(parse(raw, path), path)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Events of a ledger with a release that was settled and recorded, one settled, and one authorised."""
    ledger = Ledger.create(
        tmp_path_factory.mktemp("proofs") / "ledger.json", epsilon=4.0, delta=1e-5, relation=ReplaceOne()
    )
    first, second = authorised(ledger), authorised(ledger)
    for entry in (first, second):
        settled(ledger, entry)
    ledger.record(first, signed(first), domain=SQUARE)
    authorised(ledger)
    return events_of(ledger.path.read_bytes())


class TestReplay:
    def test_it_is_what_was_spent(self, events):
        assert [event["kind"] for event in events] == [
            *("budget", "authorised", "authorised", "settled", "settled", "measured", "authorised")
        ]
        history = read(chained(events))
        assert [entry.guarantee.epsilon() for entry in history.entries.values()] == pytest.approx(
            [0.25, 1.0, 1.0], abs=1e-4
        )

    @pytest.mark.slow
    @settings(max_examples=150)
    @given(st.data())
    def test_no_order_of_true_events_frees_budget(self, events, data):
        """Whatever is left out, repeated or mixed up: an entry counts in full unless its own record came last."""
        chosen = data.draw(st.lists(st.sampled_from(events[1:]), max_size=8))
        try:
            history = read(chained([events[0], *chosen]))
        except DpppsynthError:
            return
        # What follows a repeated authorisation is about that one.
        records = []
        for event in chosen:
            if event == events[1]:
                records.append([])
            elif event.get("entry") == identify(events[1]):
                records[-1].append(event["kind"])
        lowered = [entry for entry in history.entries.values() if entry.guarantee.epsilon() < 0.99]
        assert len(lowered) == records.count(["settled", "measured"])

    @pytest.mark.parametrize("order", [*itertools.permutations((1, 3, 5))])
    def test_one_order_alone_happened(self, events, order):
        raw = chained([events[0], *(events[k] for k in order)])
        if order == (1, 3, 5):
            assert read(raw).spent == pytest.approx(0.25, abs=1e-4)
            return
        with pytest.raises(PrivacyCheckError, match=r"authorised nothing|covers one release|never settled"):
            read(raw)

    @pytest.mark.parametrize("name", ["proof", "entry"])
    @pytest.mark.parametrize("k", [3, 5])
    def test_another_ones_proof(self, events, name, k):
        edited = copy.deepcopy(events[: k + 1])
        other = events[4] if k == 3 else events[3]
        edited[k][name] = identify(events[2]) if name == "entry" else other["proof"]
        with pytest.raises(PrivacyCheckError, match="not given its authorisation"):
            read(chained(edited))

    def test_a_settlement_by_who_was_not_given_the_authorisation(self, events):
        """An edit with all hashes right, by somebody who can write the file and does not know the secret."""
        tiny = stored(replace(SMALL, epsilon=0.001).check(SQUARE, n=60))
        points = {"n": 60, "count_unit": None, "subset": None, "levels": None}
        known = {"entry": identify(events[6]), "points": points}
        settling = {"kind": "settled", "mechanism": "laplace-cells", "guarantee": tiny, **known}
        for proof in ("0" * 64, events[6]["claim"], events[5]["proof"]):
            with pytest.raises(PrivacyCheckError, match="not given its authorisation"):
                read(chained([*events, settling | {"proof": proof}]))

    @pytest.mark.parametrize(
        ("k", "edit"),
        [
            (1, {"claim": None}),
            (1, {"claim": "ab"}),
            (3, {"proof": None}),
            (3, {"points": {"n": 0, "count_unit": None, "subset": None, "levels": None}}),
            (3, {"points": {"n": 60, "count_unit": None, "subset": {"year": 3}, "levels": None}}),
            (3, {"points": {"n": 60, "subset": None, "levels": None}}),
            (5, {"counts": "nothing"}),
        ],
    )
    def test_what_no_ledger_says(self, events, k, edit):
        edited = copy.deepcopy(events)
        edited[k] |= edit
        with pytest.raises(DpppsynthError, match=r"is not a ledger of version 1|damaged"):
            read(chained(edited))
        del edited[k][next(iter(edit))]
        with pytest.raises(DpppsynthError):
            read(chained(edited))

    @pytest.mark.parametrize("k", [0, 1, 3, 5])
    def test_no_key_is_missing_or_unknown(self, events, k):
        for name in events[k]:
            missing = copy.deepcopy(events)
            del missing[k][name]
            with pytest.raises(DpppsynthError):
                read(dump(missing))
        with pytest.raises(InputError, match=r"is not a ledger of version 1|damaged"):
            read(dump([*events[:k], events[k] | {"version": 1}, *events[k + 1 :]]))

    def test_a_record_counts_what_was_settled_alone(self, events):
        never = [events[0], events[1], {**events[5], "counts": "settled"}]
        with pytest.raises(PrivacyCheckError, match="never settled"):
            read(chained(never))
        whole = read(chained([*events[:5], {**events[5], "counts": "authorised"}]))
        assert whole.spent == pytest.approx(2.0, abs=1e-4)

    def test_each_proof_is_the_hash_of_the_next(self, events):
        assert hashed(events[5]["proof"]) == events[3]["proof"]
        assert hashed(events[3]["proof"]) == events[1]["claim"]


def test_a_gaussian_settlement_counts_on_no_word_alone(ledger):
    """Kinds are compared by their proofs, and a kind that was not authorised is refused."""
    entry = authorised(ledger)
    with pytest.raises(InputError, match="another kind of budget"):
        ledger.settle(entry, replace(SMALL.check(SQUARE, n=60), profile=GaussianDP(0.001, at=1e-6)))
    unchanged(ledger)
